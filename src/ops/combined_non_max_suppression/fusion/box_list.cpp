#include "ops/combined_non_max_suppression/fusion/box_list.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "onnx/schema.hpp"

namespace graft::passes::suppression {
namespace {

using Content = BoxRows::Content;

bool reads_any(const onnx::Node& node, const auto& is_meant) {
  return std::any_of(node.inputs.begin(), node.inputs.end(),
                     [&](const onnx::Value* input) { return input != nullptr && is_meant(input); });
}

bool has_constant_shape(const onnx::Value& value) {
  return value.shape &&
         std::all_of(value.shape->begin(), value.shape->end(), [](const Dim& dim) { return dim.is_constant(); });
}

/// Returns an axis counted from the front, or nothing for an axis that a tensor of this rank does not have.
std::optional<std::size_t> axis_from_front(std::int64_t axis, std::size_t rank) {
  const std::int64_t counted = axis < 0 ? axis + static_cast<std::int64_t>(rank) : axis;
  if (counted < 0 || counted >= static_cast<std::int64_t>(rank)) return std::nullopt;
  return static_cast<std::size_t>(counted);
}

/// Returns the product of constant sizes [first, end), or nothing if one is dynamic.
std::optional<std::int64_t> count(const Shape& shape, std::size_t first, std::size_t end) {
  std::int64_t product = 1;
  for (std::size_t i = first; i < end; ++i) {
    if (!shape[i].is_constant() || __builtin_mul_overflow(product, shape[i].value(), &product)) return std::nullopt;
  }
  return product;
}

Content worse(Content a, Content b) {
  if (a == b) return a;
  return Content::mixed;
}

}  // namespace

std::optional<std::vector<std::size_t>> named_axes(const onnx::Node& node, std::size_t rank) {
  std::optional<std::vector<std::int64_t>> given = node.ints("axes");
  if (!given) given = onnx::constant_ints(node.input(1));
  if (!given || given->empty()) return std::nullopt;
  std::vector<std::size_t> axes;
  for (const std::int64_t axis : *given) {
    const auto counted = axis_from_front(axis, rank);
    if (!counted) return std::nullopt;
    axes.push_back(*counted);
  }
  std::sort(axes.begin(), axes.end());
  return axes;
}

bool BoxList::reads_rows(const onnx::Node& node) const {
  return reads_any(node, [&](const onnx::Value* input) { return rows(input) != nullptr; });
}

bool BoxList::reads_list(const onnx::Node& node) const {
  return reads_any(node, [&](const onnx::Value* input) { return rows(input) != nullptr || is_size(input); });
}

void BoxList::add_outputs(const onnx::Node& node, const BoxRows& rows) {
  for (const onnx::Value* output : node.outputs) {
    if (output != nullptr) add(*output, rows);
  }
}

bool BoxList::follow(const onnx::Node& node, std::string& why_not) {
  why_not = fmt::format("{} does not compute each box alone", onnx::describe(node));
  if (!node.domain.empty() || !node.subgraphs().empty()) return false;
  if (node.is("Shape") && node.output() != nullptr) {
    sizes_.insert(node.output());
    return true;
  }
  if (!reads_rows(node)) return follow_sizes(node);
  if (has_trait(node, onnx::trait::elementwise)) {
    const BoxRows* x = rows(node.input(0));
    if (x == nullptr) return false;
    const bool copies = node.is("Identity") || node.is("Cast");
    BoxRows result = *x;
    if (!copies && result.content == Content::places) result.content = Content::mixed;
    add_outputs(node, result);
    return true;
  }
  if (has_trait(node, onnx::trait::broadcasting) || node.is("Where")) return follow_broadcast(node, why_not);
  if (node.is("Concat")) return follow_concat(node, why_not);
  if (node.is("Gather") || node.is("GatherND")) return follow_gather(node, why_not);
  if (node.is("Reshape") || node.is("Squeeze") || node.is("Unsqueeze") || node.is("Flatten")) {
    return follow_view(node, why_not);
  }
  return follow_rest(node, why_not);
}

bool BoxList::follow_sizes(const onnx::Node& node) {
  const auto known =
      onnx::trait::moves_data | onnx::trait::elementwise | onnx::trait::broadcasting | onnx::trait::reduction;
  if (!has_trait(node, known) && !node.is("Where") && !node.is("ConstantOfShape")) return false;
  for (const onnx::Value* input : node.inputs) {
    if (input != nullptr && !is_size(input) && !input->constant()) return false;
  }
  const bool has_fixed_length = std::all_of(node.outputs.begin(), node.outputs.end(), [](const onnx::Value* output) {
    return output == nullptr || has_constant_shape(*output);
  });
  if (!has_fixed_length) return false;
  for (const onnx::Value* output : node.outputs) {
    if (output != nullptr) sizes_.insert(output);
  }
  return true;
}

bool BoxList::follow_broadcast(const onnx::Node& node, std::string& why_not) {
  std::size_t rank = 0;
  for (const onnx::Value* input : node.inputs) {
    if (input == nullptr || !input->shape) return false;
    rank = std::max(rank, input->shape->size());
  }
  std::optional<BoxRows> result;
  for (const onnx::Value* input : node.inputs) {
    const BoxRows* x = rows(input);
    if (x == nullptr) continue;
    const std::size_t axis = x->axis + (rank - input->shape->size());
    if (result && (result->axis != axis || result->most != x->most)) {
      why_not = fmt::format("{} broadcasts the boxes along an axis", onnx::describe(node));
      return false;
    }
    result = BoxRows{axis, worse(result ? result->content : x->content, x->content), x->most};
  }
  for (const onnx::Value* input : node.inputs) {
    if (rows(input) != nullptr) continue;
    const std::size_t own = input->shape->size();
    const std::size_t missing = rank - own;
    if (is_size(input) || (result->axis >= missing && !((*input->shape)[result->axis - missing] == Dim(1)))) {
      why_not = fmt::format("{} combines the boxes with '{}', which is not the same for all boxes",
                            onnx::describe(node), input->name);
      return false;
    }
  }
  if (result->content == Content::places) result->content = Content::mixed;
  add_outputs(node, *result);
  return true;
}

bool BoxList::follow_concat(const onnx::Node& node, std::string& why_not) {
  std::optional<BoxRows> result;
  for (const onnx::Value* input : node.inputs) {
    const BoxRows* x = rows(input);
    const auto axis =
        x == nullptr || !input->shape ? std::nullopt : axis_from_front(node.int_or("axis", 0), input->shape->size());
    if (!axis || *axis == x->axis || (result && (result->axis != x->axis || result->most != x->most))) {
      why_not = fmt::format("{} joins the boxes with '{}'", onnx::describe(node), input == nullptr ? "" : input->name);
      return false;
    }
    result = BoxRows{x->axis, worse(result ? result->content : x->content, x->content), x->most};
  }
  add_outputs(node, *result);
  return true;
}

bool BoxList::follow_gather(const onnx::Node& node, std::string& why_not) {
  const BoxRows* data = rows(node.input(0));
  const BoxRows* places = rows(node.input(1));
  const onnx::Value* x = node.input(0);
  const onnx::Value* indices = node.input(1);
  if (x == nullptr || indices == nullptr || !x->shape || !indices->shape || is_size(x) || is_size(indices))
    return false;
  const bool is_nd = node.is("GatherND");
  if (places != nullptr) {
    // The data are the same for all boxes, and each box selects its own part.
    if (data != nullptr || node.int_or("batch_dims", 0) != 0) return false;
    const auto axis = is_nd ? std::optional<std::size_t>(0) : axis_from_front(node.int_or("axis", 0), x->shape->size());
    if (!axis || (is_nd && places->axis + 1 == indices->shape->size())) return false;
    const Content content = places->content == Content::mixed ? Content::mixed : Content::data;
    add_outputs(node, {*axis + places->axis, content, places->most});
    return true;
  }
  const auto axis = is_nd ? std::nullopt : axis_from_front(node.int_or("axis", 0), x->shape->size());
  if (!axis || *axis == data->axis || !indices->constant()) {
    why_not = fmt::format("{} selects among the boxes by another list", onnx::describe(node));
    return false;
  }
  BoxRows result = *data;
  if (*axis < result.axis) result.axis = result.axis + indices->shape->size() - 1;
  add_outputs(node, result);
  return true;
}

bool BoxList::follow_view(const onnx::Node& node, std::string& /*why_not*/) {
  const onnx::Value* x = node.input(0);
  const onnx::Value* y = node.output();
  const BoxRows* from = rows(x);
  if (from == nullptr || !x->shape || y == nullptr || !y->shape || from->axis >= x->shape->size()) return false;
  const auto before = count(*x->shape, 0, from->axis);
  const auto after = count(*x->shape, from->axis + 1, x->shape->size());
  if (!before || !after) return false;
  const auto target = node.is("Reshape") ? onnx::constant_ints(node.input(1)) : std::nullopt;
  if (node.is("Reshape") && !target && !is_size(node.input(1))) return false;
  for (std::size_t axis = 0; axis < y->shape->size(); ++axis) {
    if (count(*y->shape, 0, axis) != before || count(*y->shape, axis + 1, y->shape->size()) != after) continue;
    // A constant length of the list would be the length for which the file was written.
    if ((*y->shape)[axis].is_constant()) continue;
    if (target) {
      const std::int64_t size = axis < target->size() ? (*target)[axis] : 0;
      const bool copies = size == 0 && axis == from->axis && node.int_or("allowzero", 0) == 0;
      if (size != -1 && !copies) continue;
    }
    BoxRows result = *from;
    result.axis = axis;
    add_outputs(node, result);
    return true;
  }
  return false;
}

bool BoxList::follow_rest(const onnx::Node& node, std::string& why_not) {
  const onnx::Value* x = node.input(0);
  const BoxRows* from = rows(x);
  if (from == nullptr || !x->shape) return false;
  const std::size_t rank = x->shape->size();
  BoxRows result = *from;
  const bool is_arg = node.is("ArgMax") || node.is("ArgMin");
  if (has_trait(node, onnx::trait::reduction) || is_arg) {
    std::optional<std::vector<std::size_t>> axes;
    if (is_arg) {
      const auto axis = axis_from_front(node.int_or("axis", 0), rank);
      if (axis) axes = std::vector{*axis};
    } else {
      axes = named_axes(node, rank);
    }
    if (!axes || std::find(axes->begin(), axes->end(), from->axis) != axes->end()) {
      why_not = fmt::format("{} reduces over the boxes", onnx::describe(node));
      return false;
    }
    if (node.int_or("keepdims", 1) == 0) {
      result.axis -= static_cast<std::size_t>(
          std::count_if(axes->begin(), axes->end(), [&](std::size_t axis) { return axis < from->axis; }));
    }
    if (result.content != Content::data) result.content = Content::mixed;
  } else if (node.is("Slice") || node.is("Split")) {
    const auto named =
        node.is("Split") ? std::optional(std::vector{node.int_or("axis", 0)}) : onnx::constant_ints(node.input(3));
    if (!named) return false;
    for (std::size_t i = 1; i < node.inputs.size(); ++i) {
      if (node.input(i) != nullptr && !node.input(i)->constant()) return false;
    }
    for (const std::int64_t each : *named) {
      const auto axis = axis_from_front(each, rank);
      if (!axis || *axis == from->axis) {
        why_not = fmt::format("{} cuts the list of boxes", onnx::describe(node));
        return false;
      }
    }
  } else if (node.is("Transpose")) {
    const auto order = node.ints("perm");
    const auto found = order ? std::find(order->begin(), order->end(), static_cast<std::int64_t>(from->axis))
                             : std::vector<std::int64_t>::const_iterator();
    if (order && found == order->end()) return false;
    result.axis = order ? static_cast<std::size_t>(found - order->begin()) : rank - 1 - from->axis;
  } else if (node.is("Expand")) {
    const onnx::Value* y = node.output();
    const onnx::Value* target = node.input(1);
    if (y == nullptr || !y->shape || target == nullptr || (!target->constant() && !is_size(target))) return false;
    result.axis = from->axis + (y->shape->size() - rank);
  } else {
    return false;
  }
  add_outputs(node, result);
  return true;
}

}  // namespace graft::passes::suppression

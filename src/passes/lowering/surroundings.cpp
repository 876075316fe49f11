// The facts were measured in TensorRT-RTX 1.4 to 1.7.
#include "passes/lowering/surroundings.hpp"

#include <algorithm>
#include <optional>
#include <unordered_set>

#include "onnx/known_sizes.hpp"
#include "onnx/schema.hpp"

namespace graft::passes {

using onnx::ElementType;
using onnx::Node;
using onnx::Value;

namespace {

bool is_in_body(const onnx::Graph& graph) { return graph.parent() != nullptr; }

bool is_loop(const Node& node) { return onnx::is_any_of(node, {"Loop", "Scan"}); }

/// Returns the dimensions from axis `begin` up to, but not including, `end`. Negative axes count from the end; axes
/// outside the rank are clamped.
Shape cut_shape(const Shape& shape, std::int64_t begin, std::int64_t end) {
  const auto size = static_cast<std::int64_t>(shape.size());
  const auto clamp = [size](std::int64_t at) { return std::clamp<std::int64_t>(at < 0 ? at + size : at, 0, size); };
  if (clamp(begin) >= clamp(end)) return {};
  return {shape.begin() + clamp(begin), shape.begin() + clamp(end)};
}

/// Returns the dimensions that a value contains or multiplies, if it is the result of Shape or Size, or of a Gather or
/// Slice that selects from a Shape. Returns nothing for other values, and for tensors without a known rank.
std::optional<Shape> read_dimensions(const Value& value) {
  const Node* node = value.producer;
  if (node == nullptr || !node->domain.empty() || node->input(0) == nullptr) return std::nullopt;
  if (node->is("Shape") && node->input(0)->shape) {
    const Shape& shape = *node->input(0)->shape;
    return cut_shape(shape, node->int_or("start", 0), node->int_or("end", static_cast<std::int64_t>(shape.size())));
  }
  if (node->is("Size")) return node->input(0)->shape;
  if (!onnx::is_any_of(*node, {"Gather", "Slice"}) || node->input(0)->producer == nullptr ||
      !node->input(0)->producer->is("Shape")) {
    return std::nullopt;
  }
  std::optional<Shape> all = read_dimensions(*node->input(0));
  const auto first = constant_ints(node->input(1));
  if (!all || !first) return all;
  if (node->is("Gather")) {
    Shape selected;
    for (const std::int64_t index : *first) {
      for (const Dim& dim : cut_shape(*all, index, index == -1 ? static_cast<std::int64_t>(all->size()) : index + 1)) {
        selected.push_back(dim);
      }
    }
    return selected;
  }
  const auto last = constant_ints(node->input(2));
  const bool has_step = node->input(4) != nullptr;
  return has_step || !last || first->size() != 1 || last->size() != 1 ? all : cut_shape(*all, (*first)[0], (*last)[0]);
}

/// Returns whether the rank of a tensor is unknown, or the size of an axis from axis 2 on is not fixed.
bool has_dynamic_image(const Value& value) {
  constexpr std::size_t first_resized_axis = 2;
  return !value.shape || !std::all_of(value.shape->begin() + static_cast<std::ptrdiff_t>(
                                                                 std::min(first_resized_axis, value.shape->size())),
                                      value.shape->end(), [](const Dim& dim) { return dim.is_constant(); });
}

}  // namespace

bool has_dynamic_sizes(const Value* value) { return value != nullptr && !onnx::has_known_sizes(*value); }

bool reads_dimensions(const Node& node) { return onnx::is_any_of(node, {"Shape", "Size"}); }

Search search_back(const Value* start, const std::function<Step(const Value&)>& visit) {
  Search search;
  std::vector<const Value*> waiting;
  std::unordered_set<const Value*> seen;
  const auto add = [&](const Value* value) {
    if (value == nullptr || seen.contains(value)) return;
    if (seen.size() == search_limit) {
      search.reached_limit = true;
      return;
    }
    seen.insert(value);
    waiting.push_back(value);
  };
  add(start);
  while (!waiting.empty()) {
    const Value& value = *waiting.back();
    waiting.pop_back();
    switch (visit(value)) {
      case Step::found: search.found = &value; return search;
      case Step::stop: break;
      case Step::into_inputs:
        if (value.producer != nullptr) std::for_each(value.producer->inputs.begin(), value.producer->inputs.end(), add);
    }
  }
  return search;
}

bool is_folded_into_sizes(const Node& node) {
  if (is_any_of(node, {"BitCast", "BitShift", "BitwiseAnd", "BitwiseNot", "BitwiseOr", "BitwiseXor", "Compress",
                       "DepthToSpace", "PRelu", "RegexFullMatch", "ReverseSequence", "SpaceToDepth", "StringConcat",
                       "Swish"})) {
    return false;
  }
  using namespace onnx::trait;  // NOLINT(google-build-using-namespace)
  return has_trait(node, elementwise | broadcasting | moves_data | reduction) ||
         is_any_of(node, {"Gemm", "MatMul", "Pad", "Trilu"});
}

Condition find_condition(const Node& node) {
  if (!node.is("If") || node.input(0) == nullptr) return Condition::computed;
  bool reads_dynamic = false;
  const Search search = search_back(node.input(0), [&](const Value& value) {
    if (value.type && onnx::is_floating_point(*value.type)) return Step::found;
    if (value.constant() || (value.producer == nullptr && value.initializer && !value.is_input)) return Step::stop;
    if (value.producer == nullptr) return Step::found;
    if (const std::optional<Shape> dimensions = read_dimensions(value)) {
      reads_dynamic = reads_dynamic || !onnx::has_known_sizes(*dimensions);
      return Step::stop;
    }
    if (reads_dimensions(*value.producer)) {
      reads_dynamic = true;
      return Step::stop;
    }
    const bool is_folded = is_folded_into_sizes(*value.producer) && !value.producer->is("Flatten");
    return is_folded ? Step::into_inputs : Step::found;
  });
  if (search.found != nullptr) return Condition::computed;
  return reads_dynamic || search.reached_limit ? Condition::undecided : Condition::constant;
}

bool has_constant_condition(const Node& node) { return find_condition(node) == Condition::constant; }

const Node* find_owner(const onnx::Graph& body) {
  if (body.parent() == nullptr) return nullptr;
  for (const Node* node : body.parent()->nodes()) {
    const std::vector<onnx::Graph*> bodies = node->subgraphs();
    if (std::find(bodies.begin(), bodies.end(), &body) != bodies.end()) return node;
  }
  return nullptr;
}

std::vector<std::size_t> size_inputs(const Node& node) {
  if (!node.domain.empty()) return {};
  if (onnx::is_any_of(node, {"ConstantOfShape", "HannWindow", "HammingWindow", "BlackmanWindow"})) return {0};
  if (onnx::is_any_of(node, {"Reshape", "Expand", "Tile", "Pad", "Upsample", "TopK", "OneHot", "Split", "CumSum"}))
    return {1};
  if (node.is("Resize")) return node.graph->opset() < 11 ? std::vector<std::size_t>{1} : std::vector<std::size_t>{2, 3};
  if (node.is("Slice")) return {1, 2, 4};
  if (node.is("Range")) return {0, 1, 2};
  // Without results of each step, the number of steps decides no size.
  if (node.is("Loop") && node.outputs.size() + 2 > node.inputs.size()) return {0};
  return {};
}

const Node* find_loop(const Value& value) {
  if (!value.is_input || !is_in_body(*value.graph)) return nullptr;
  const Node* owner = find_owner(*value.graph);
  return owner != nullptr && is_loop(*owner) ? owner : nullptr;
}

Search find_data_of_size(const Value& size) {
  return search_back(&size, [](const Value& value) {
    if (find_loop(value) != nullptr) return Step::found;
    if (value.is_input && !value.initializer) {
      const bool is_number = value.type == ElementType::i32 || value.type == ElementType::i64;
      const bool is_read = value.type && !has_dynamic_sizes(&value) && !is_in_body(*value.graph);
      return is_read && !is_number ? Step::found : Step::stop;
    }
    // The values of a tensor whose shape is dynamic are no matter of sizes: TensorRT reads them when the engine runs.
    if (value.producer == nullptr || has_dynamic_sizes(&value)) return Step::stop;
    if (value.producer->is("If")) return has_constant_condition(*value.producer) ? Step::stop : Step::found;
    return is_folded_into_sizes(*value.producer) ? Step::into_inputs : Step::stop;
  });
}

bool has_size_from_data(const Node& node) {
  const std::vector<std::size_t> inputs = size_inputs(node);
  return std::any_of(inputs.begin(), inputs.end(), [&](std::size_t index) {
    const Value* size = node.input(index);
    const Value* source = size == nullptr || size->constant() ? nullptr : find_data_of_size(*size).found;
    if (source == nullptr || find_loop(*source) != nullptr) return false;
    // TensorRT may decide the If itself, from the symbols of the sizes.
    return source->producer == nullptr || find_condition(*source->producer) != Condition::undecided;
  });
}

const Node* find_if_around(const Node& node) {
  if (!node.is("If") || has_constant_condition(node)) return nullptr;
  const Node* outer = nullptr;
  for (const onnx::Graph* graph = node.graph; graph->parent() != nullptr; graph = graph->parent()) {
    const Node* owner = find_owner(*graph);
    if (owner == nullptr || !owner->is("If")) return nullptr;
    if (outer == nullptr && !has_constant_condition(*owner)) outer = owner;
  }
  if (outer == nullptr) return nullptr;
  bool has_dynamic = std::any_of(node.outputs.begin(), node.outputs.end(), has_dynamic_sizes);
  for (const onnx::Graph* branch : node.subgraphs()) {
    branch->for_each_node([&](const Node& inner) {
      has_dynamic = has_dynamic || std::any_of(inner.outputs.begin(), inner.outputs.end(), has_dynamic_sizes);
    });
  }
  return has_dynamic ? outer : nullptr;
}

const Node* find_body_before_resize(const Node& resize) {
  const Value* input = resize.input(0);
  if (!resize.is("Resize") || resize.string_or("mode", "nearest") != "cubic" || input == nullptr ||
      !has_dynamic_image(*input)) {
    return nullptr;
  }
  const Search search = search_back(input, [](const Value& value) {
    if (value.producer == nullptr || value.producer->is("Shape")) return Step::stop;
    const bool has_body = !value.producer->subgraphs().empty() && !has_constant_condition(*value.producer);
    return has_body ? Step::found : Step::into_inputs;
  });
  return search.found == nullptr ? nullptr : search.found->producer;
}

bool follows_body(const Node& resize) { return find_body_before_resize(resize) != nullptr; }

std::vector<const Node*> find_resizes_after(const Node& node) {
  std::vector<const Node*> resizes;
  std::vector<const Node*> waiting = {&node};
  std::unordered_set<const Node*> seen = {&node};
  while (!waiting.empty() && seen.size() < search_limit) {
    const Node& reader = *waiting.back();
    waiting.pop_back();
    if (&reader != &node && find_body_before_resize(reader) != nullptr) resizes.push_back(&reader);
    for (const Value* output : reader.outputs) {
      if (output == nullptr) continue;
      for (const onnx::Use& use : output->uses) {
        if (!use.node->is("Shape") && seen.insert(use.node).second) waiting.push_back(use.node);
      }
    }
  }
  return resizes;
}

bool is_refused_if(const Node& node) {
  if (has_constant_condition(node)) return false;
  if (find_if_around(node) != nullptr || !find_resizes_after(node).empty()) return true;
  bool has_nested = false;
  for (const onnx::Graph* branch : node.subgraphs()) {
    branch->for_each_node([&](const Node& inner) { has_nested = has_nested || find_if_around(inner) == &node; });
  }
  return has_nested;
}

bool is_imported_as_i32(const Value& value) {
  if (value.type != ElementType::u8) return false;
  const Search search = search_back(&value, [](const Value& each) {
    if (each.type != ElementType::u8 || each.constant()) return Step::stop;
    if (each.producer == nullptr || each.producer->is("Cast") || !each.producer->subgraphs().empty())
      return Step::found;
    return onnx::is_any_of(*each.producer, {"QuantizeLinear", "DynamicQuantizeLinear", "ConstantOfShape"})
               ? Step::found
               : Step::into_inputs;
  });
  return search.found == nullptr && !search.reached_limit;
}

}  // namespace graft::passes

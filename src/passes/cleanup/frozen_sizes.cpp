// Finds windows of pools and lengths of reshapes that fit only the sizes of the file.
#include "passes/cleanup/frozen_sizes.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstdint>
#include <optional>
#include <set>

#include "graft/error.hpp"
#include "onnx/known_sizes.hpp"
#include "onnx/node_ref.hpp"
#include "onnx/shape_inference.hpp"
#include "passes/operator_fusion.hpp"

namespace graft::passes {
namespace {

using Numbers = std::vector<std::int64_t>;

bool is_dynamic(const Dim& dim) { return !dim.is_constant(); }

/// Returns whether a Flatten, Reshape or Squeeze reads the value, directly or through Transpose and Identity nodes.
bool is_flattened(const onnx::Value& value) {
  return std::any_of(value.uses.begin(), value.uses.end(), [](const onnx::Use& use) {
    const onnx::Node& node = *use.node;
    if (node.is("Flatten") || node.is("Reshape") || node.is("Squeeze")) return true;
    return (node.is("Transpose") || node.is("Identity")) && node.output() != nullptr && is_flattened(*node.output());
  });
}

/// Returns whether pooling windows with this kernel and stride divide an axis of `size` elements into `count` windows.
/// Exporters write an adaptive pool (one with a fixed number of windows) in this way. Kernels of 2 and 3 are excluded,
/// because they are usual pooling windows at any size.
bool divides(std::int64_t size, std::int64_t count, std::int64_t kernel, std::int64_t stride) {
  const std::int64_t ceiling = (size + count - 1) / count;
  const std::int64_t floor = size / count;
  constexpr std::int64_t largest_usual = 3;
  return count > 1 && kernel > largest_usual && (kernel == ceiling || kernel == floor) &&
         (stride == ceiling || stride == floor);
}

std::optional<std::string> frozen_window(const onnx::Node& node, const onnx::Model& declared) {
  if (!node.is("MaxPool") && !node.is("AveragePool") && !node.is("LpPool")) return std::nullopt;
  const onnx::Value* x = node.input(0);
  const onnx::Value* y = node.output();
  if (x == nullptr || y == nullptr || !x->shape) return std::nullopt;
  const onnx::Value* was_x = declared.graph().find_local(x->name);
  const onnx::Value* was_y = declared.graph().find_local(y->name);
  if (was_x == nullptr || was_y == nullptr || !was_x->shape || !was_y->shape) return std::nullopt;
  const auto kernel = node.ints("kernel_shape").value_or(Numbers{});
  const auto stride = node.ints("strides").value_or(Numbers(kernel.size(), 1));
  constexpr std::size_t before_image = 2;  // batch and channels
  const std::size_t rank = kernel.size() + before_image;
  if (stride.size() != kernel.size() || x->shape->size() != rank || was_x->shape->size() != rank ||
      was_y->shape->size() != rank) {
    return std::nullopt;
  }
  const bool flattened = is_flattened(*y);
  for (std::size_t i = 0; i < kernel.size(); ++i) {
    const Dim& was = (*was_x->shape)[i + before_image];
    const Dim& count = (*was_y->shape)[i + before_image];
    if (!is_dynamic((*x->shape)[i + before_image]) || is_dynamic(was) || is_dynamic(count) || was.value() < 2) continue;
    const bool whole = kernel[i] == was.value();
    if (!whole && !(flattened && divides(was.value(), count.value(), kernel[i], stride[i]))) continue;
    return fmt::format("its window [{}] with stride [{}] {} the {} elements that '{}' had along axis {}",
                       fmt::join(kernel, ", "), fmt::join(stride, ", "),
                       whole ? "covers all of" : fmt::format("divides into {} parts", count.value()), was.value(),
                       x->name, i + before_image);
  }
  return std::nullopt;
}

/// Returns a clause for messages if the node is a Reshape whose constant target contains a length that was computed
/// from sizes which are now dynamic. Returns nothing for any other node. At other sizes such a Reshape fails, or moves
/// elements of an image into the batch axis.
std::optional<std::string> frozen_length(const onnx::Node& node) {
  if (!node.is("Reshape") || node.input(0) == nullptr || !node.input(0)->shape || node.input(1) == nullptr) {
    return std::nullopt;
  }
  const auto constant = node.input(1)->constant();
  const auto target = constant ? constant->ints() : std::nullopt;
  if (!target) return std::nullopt;
  const Shape& shape = *node.input(0)->shape;
  std::int64_t fixed = 1;
  bool dynamic = false;
  for (std::size_t axis = 0; axis < shape.size(); ++axis) {
    const bool copied = axis < target->size() && (*target)[axis] == 0;
    if (copied) continue;
    dynamic = dynamic || (is_dynamic(shape[axis]) && axis > 0);
    if (shape[axis].is_constant() && __builtin_mul_overflow(fixed, shape[axis].value(), &fixed)) return std::nullopt;
  }
  std::int64_t wanted = 1;
  for (const std::int64_t number : *target) {
    if (number > 0 && __builtin_mul_overflow(wanted, number, &wanted)) return std::nullopt;
  }
  if (!dynamic || fixed == 0 || fixed % wanted == 0) return std::nullopt;
  return fmt::format("it reshapes '{}' to [{}], a length computed from the sizes in the file", node.input(0)->name,
                     fmt::join(*target, ", "));
}

}  // namespace

std::vector<FrozenSize> find_frozen_sizes(const onnx::Model& declared, const onnx::Model& dynamic) {
  std::vector<FrozenSize> found;
  for (const onnx::Node* node : dynamic.graph().nodes()) {
    auto text = frozen_window(*node, declared);
    if (!text) text = frozen_length(*node);
    if (text) found.push_back({ref_of(*node), *std::move(text)});
  }
  return found;
}

std::vector<FrozenSize> find_frozen_sizes(const onnx::Model& model,
                                          const std::map<std::string, Shape, std::less<>>& shapes,
                                          const std::function<onnx::Model()>& read_declared) {
  const bool opens =
      std::any_of(shapes.begin(), shapes.end(), [](const auto& entry) { return !onnx::has_known_sizes(entry.second); });
  if (!opens) return {};
  onnx::Model dynamic = model.clone();
  infer_shapes(dynamic, shapes);
  try {
    onnx::Model declared = read_declared();
    infer_shapes(declared);
    return find_frozen_sizes(declared, dynamic);
  } catch (const Error&) {
    return find_frozen_sizes(onnx::Model(), dynamic);  // a file that needs the shapes declares no frozen sizes
  }
}

std::vector<std::string> frozen_size_warnings(const std::vector<FrozenSize>& frozen, const RewriteReport& report) {
  const auto lifts_sizes = [](std::string_view pass) {
    const auto fusions = operator_fusions();
    return std::any_of(fusions.begin(), fusions.end(), [&](const OperatorFusion* fusion) {
      return fusion->lifts_frozen_sizes && fusion->pass.name == pass;
    });
  };
  std::vector<std::string> warnings;
  for (const FrozenSize& place : frozen) {
    const bool is_replaced = std::any_of(report.rewrites.begin(), report.rewrites.end(), [&](const Rewrite& rewrite) {
      return lifts_sizes(rewrite.pass) &&
             std::set<NodeRef, onnx::ByName>(rewrite.nodes.begin(), rewrite.nodes.end()).contains(place.node);
    });
    if (is_replaced) continue;
    warnings.push_back(
        fmt::format("{}: {}, which are dynamic now: at other sizes the node computes a different result or fails",
                    onnx::describe(place.node), place.text));
  }
  return warnings;
}

}  // namespace graft::passes

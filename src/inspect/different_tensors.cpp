// Infers the model again for the sizes of the build, and compares tensor by tensor.
#include "inspect/different_tensors.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "graft/error.hpp"
#include "graft/setting.hpp"
#include "inspect/model_parts.hpp"
#include "onnx/shape_inference.hpp"
#include "onnx/tensor_data.hpp"

namespace graft::inspect {
namespace {

using nlohmann::json;
using Sizes = std::vector<std::int64_t>;
using InputShapes = std::map<std::string, Shape, std::less<>>;

/// Returns dimensions as text, such as "1x3xn", or "a scalar" if there are none. to_text(dim) returns the text of one
/// dimension.
template <class Dims, class ToText>
std::string shape_text(const Dims& dims, const ToText& to_text) {
  std::vector<std::string> texts;
  for (const auto& dim : dims) texts.push_back(to_text(dim));
  return texts.empty() ? "a scalar" : fmt::format("{}", fmt::join(texts, "x"));
}

std::string built_text(const Sizes& sizes) {
  return shape_text(sizes, [](std::int64_t size) { return size < 0 ? std::string("?") : std::to_string(size); });
}

std::string defined_text(const Shape& shape) {
  return shape_text(shape, [](const Dim& dim) { return dim.to_string(); });
}

bool differs(const Shape& defined, const Sizes& built) {
  if (defined.size() != built.size()) return true;
  for (std::size_t i = 0; i < built.size(); ++i) {
    if (built[i] >= 0 && defined[i].is_constant() && defined[i].value() != built[i]) return true;
  }
  return false;
}

/// Returns whether TensorRT's type `built` differs from ONNX's. An unknown type name, and f32 in place of f64, do not
/// count as different.
bool differs(onnx::ElementType defined, const std::string& built) {
  const std::optional<onnx::ElementType> type = onnx::parse_element_type(built);
  const bool is_known_change = defined == onnx::ElementType::f64 && type == onnx::ElementType::f32;
  return type && *type != defined && !is_known_change;
}

/// Returns a clause on how the shape or type of a value in TensorRT differs from ONNX's, or an empty string. `shapes`
/// and `types` are those in TensorRT, by tensor name.
std::string difference_of(const onnx::Value& value, const json& shapes, const json& types) {
  const auto shape = shapes.find(value.name);
  if (value.shape && shape != shapes.end()) {
    const Sizes built = shape->get<Sizes>();
    if (differs(*value.shape, built)) {
      return fmt::format("its output '{}' is {} where ONNX defines {}", value.name, built_text(built),
                         defined_text(*value.shape));
    }
  }
  const auto type = types.find(value.name);
  if (value.type && value.is_output() && type != types.end() && differs(*value.type, type->get<std::string>())) {
    return fmt::format("its output '{}' is of type {} where ONNX defines {}", value.name, type->get<std::string>(),
                       onnx::to_string(*value.type));
  }
  return {};
}

/// Returns the shapes of dynamic inputs as text, such as " for x=1x3x4x4", or an empty string if there are none.
std::string inputs_text(const InputShapes& inputs) {
  std::vector<std::string> texts;
  for (const auto& [name, shape] : inputs) texts.push_back(fmt::format("{}={}", name, defined_text(shape)));
  return texts.empty() ? "" : fmt::format(" for {}", fmt::join(texts, ", "));
}

/// Returns the names of all values in the sub-graphs of the graph's nodes.
std::set<std::string, std::less<>> inner_names_of(const onnx::Graph& graph) {
  std::set<std::string, std::less<>> names;
  graph.for_each_node([&](const onnx::Node& node) {
    for (const onnx::Graph* inner : node.subgraphs()) {
      for (const onnx::Value* value : inner->values()) names.insert(value->name);
    }
  });
  return names;
}

/// Calls `found` for each value of the main graph whose shape or type in TensorRT differs from ONNX's, with a clause on
/// the difference. Skips values that depend on such a value. `shapes` and `types` are those in TensorRT, by tensor
/// name.
void compare(const onnx::Model& model, const json& shapes, const json& types,
             const std::function<void(const onnx::Value&, std::string)>& found) {
  const onnx::Graph& graph = model.graph();
  // TensorRT may use the name of a tensor of the main graph for one in a function.
  const bool has_unique_names = model.functions.empty();
  // A branch or body may have another tensor of the same name, which TensorRT's network has too.
  const std::set<std::string, std::less<>> inner_names = inner_names_of(graph);
  std::set<const onnx::Value*> spoiled;
  for (const onnx::Node* node : graph.nodes()) {
    bool is_spoiled = false;
    for_each_read(*node, graph, [&](const onnx::Value& value) { is_spoiled = is_spoiled || spoiled.contains(&value); });
    for (const onnx::Value* output : node->outputs) {
      if (is_spoiled) break;
      if (output == nullptr || (!has_unique_names && !output->is_output()) || inner_names.contains(output->name)) {
        continue;
      }
      std::string difference = difference_of(*output, shapes, types);
      if (difference.empty()) continue;
      found(*output, std::move(difference));
      is_spoiled = true;
    }
    if (is_spoiled) spoiled.insert(node->outputs.begin(), node->outputs.end());
  }
}

}  // namespace

std::vector<DifferentTensor> find_different_tensors(const onnx::Model& model, const json& built) {
  std::vector<DifferentTensor> different;
  const json types = built.value("types", json::object());
  for (const json& sizes : built.value("sizes", json::array())) {
    InputShapes inputs;
    for (const auto& [name, dims] : sizes.at("inputs").items()) {
      const Sizes given = dims.get<Sizes>();
      inputs.emplace(name, Shape(given.begin(), given.end()));
    }
    onnx::Model inferred = model.clone();
    try {
      onnx::infer_shapes(inferred, inputs);
    } catch (const Error&) {  // ONNX defines nothing for a model that contradicts itself
      continue;
    }
    compare(inferred, sizes.at("shapes"), types, [&](const onnx::Value& value, const std::string& reason) {
      const bool is_known = std::any_of(different.begin(), different.end(),
                                        [&](const DifferentTensor& each) { return each.name == value.name; });
      if (!is_known) different.push_back({value.name, reason + inputs_text(inputs)});
    });
  }
  return different;
}

void note_different_tensor(const std::string& reason, bool is_lowered, NodeSupport& verdict) {
  if (verdict.cause == computed_wrongly && verdict.support != Support::native) return;
  verdict.reason = reason;
  verdict.cause = computed_wrongly;
  verdict.support = is_lowered ? Support::lowered : Support::unsupported;
  if (is_lowered) return;
  verdict.advice =
      fmt::format("change the node so that TensorRT computes what ONNX defines; or {} leaves the node to the host",
                  setting_name(Setting::cut));
}

}  // namespace graft::inspect

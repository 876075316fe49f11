// TensorRT-RTX 1.7 imports f64 tensors, constants included, as f32, without a message.
#include "inspect/f64_nodes.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <set>
#include <vector>

#include "graft/error.hpp"
#include "inspect/function_bodies.hpp"
#include "onnx/schema.hpp"
#include "onnx/tensor_data.hpp"
#include "passes/lowering/refused_forms.hpp"

namespace graft::inspect {
namespace {

bool is_f64(const onnx::Value* value) { return value != nullptr && value->type == onnx::ElementType::f64; }

bool is_integer(const onnx::Value* value) { return value != nullptr && value->type && onnx::is_integer(*value->type); }

/// Returns whether every element of a node's results is an element of one of its inputs or a constant, so that the node
/// computes nothing.
bool moves_elements(const onnx::Node& node) {
  if (has_trait(node, onnx::trait::moves_data | onnx::trait::reads_shape)) return true;
  if (onnx::is_any_of(node, {"ScatterElements", "ScatterND"})) return !passes::has_reduction(node);
  if (onnx::is_any_of(node, {"Resize", "Upsample"})) return node.string_or("mode", "nearest") == "nearest";
  return onnx::is_any_of(node, {"CenterCropPad", "ConcatFromSequence", "Constant", "ConstantOfShape", "MaxUnpool",
                                "OneHot", "Pad", "Scatter", "SequenceAt", "SequenceConstruct", "SequenceErase",
                                "SequenceInsert", "SplitToSequence", "TensorScatter", "Trilu", "Where"});
}

/// Returns whether a Cast reads or returns integers. Such a Cast may give another result in f32, which cannot represent
/// all integers above 2^24.
bool casts_integers(const onnx::Node& node) { return is_integer(node.input(0)) || is_integer(node.output()); }

bool computes_in_f64(const onnx::Node& node) {
  const bool has_f64 = std::any_of(node.inputs.begin(), node.inputs.end(), is_f64) ||
                       std::any_of(node.outputs.begin(), node.outputs.end(), is_f64);
  if (!has_f64 || !node.subgraphs().empty()) return false;
  if (onnx::is_any_of(node, {"Cast", "CastLike"})) return casts_integers(node);
  return !moves_elements(node);
}

bool exceeds_f32(const onnx::TensorData& constant) {
  if (constant.type != onnx::ElementType::f64) return false;
  const auto numbers = constant.numbers();
  return numbers && std::any_of(numbers->begin(), numbers->end(), [](double number) {
           return std::isfinite(number) && std::abs(number) > std::numeric_limits<float>::max();
         });
}

class Findings {
 public:
  void add(const onnx::Node& node) {
    if (computes_in_f64(node)) nodes.push_back(onnx::describe(node));
    for (const onnx::Value* input : node.inputs) add_constant(input);
    const onnx::NodeAttribute* attribute = node.is("ConstantOfShape") ? node.attribute("value") : nullptr;
    const auto* filling = attribute == nullptr ? nullptr : attribute->get<onnx::TensorData>();
    if (filling != nullptr && exceeds_f32(*filling)) constants.push_back(fmt::format("'{}'", node.output()->name));
  }

  std::vector<std::string> nodes;
  std::vector<std::string> constants;

 private:
  void add_constant(const onnx::Value* value) {
    if (!is_f64(value) || !seen_.insert(value).second) return;
    const std::optional<onnx::TensorData> constant = value->constant();
    if (constant && exceeds_f32(*constant)) constants.push_back(fmt::format("'{}'", value->name));
  }

  std::set<const onnx::Value*> seen_;
};

Findings find_in(const onnx::Model& model) {
  Findings findings;
  model.graph().for_each_node([&](const onnx::Node& node) { findings.add(node); });
  return findings;
}

Findings find_in_nodes_and_functions(const onnx::Model& model) {
  const std::set<onnx::FunctionKey> functions = called_functions(model);
  if (functions.empty()) return find_in(model);
  onnx::Model whole = model.clone();
  try {
    inline_bodies(whole, functions);
  } catch (const Error&) {  // the opsets of a function are incompatible; the verdict on its call reports this
    return find_in(model);
  }
  return find_in(whole);
}

/// Returns a list of up to five of the words as text, followed by the number of the remaining words: "a, b, c, d, e and
/// 3 more nodes", for example, if `others` is "nodes".
std::string list(std::vector<std::string> words, std::string_view others) {
  constexpr std::size_t most = 5;
  const std::size_t more = words.size() - std::min(words.size(), most);
  words.resize(words.size() - more);
  const std::string listed = fmt::format("{}", fmt::join(words, ", "));
  return more == 0 ? listed : fmt::format("{} and {} more {}", listed, more, others);
}

}  // namespace

std::optional<std::string> f64_warning(const onnx::Model& model) {
  Findings findings = find_in_nodes_and_functions(model);
  std::vector<std::string> ports;
  const auto add_port = [&](const onnx::Value* value) {
    if (is_f64(value)) ports.push_back(fmt::format("'{}'", value->name));
  };
  std::for_each(model.graph().inputs().begin(), model.graph().inputs().end(), add_port);
  std::for_each(model.graph().outputs().begin(), model.graph().outputs().end(), add_port);
  if (findings.nodes.empty() && findings.constants.empty() && ports.empty()) return std::nullopt;
  std::vector<std::string> parts;
  if (!findings.nodes.empty()) parts.push_back(list(std::move(findings.nodes), "nodes"));
  if (!findings.constants.empty()) {
    parts.push_back(fmt::format("the maximum of f32 is 3.4e38, and larger values are in {}",
                                list(std::move(findings.constants), "constants")));
  }
  if (!ports.empty()) {
    parts.push_back(fmt::format("in the engine, the type of {} is f32", list(std::move(ports), "inputs and outputs")));
  }
  return fmt::format("{}: TensorRT computes f64 {}: {}", model.source, f64_in_f32, fmt::join(parts, "; "));
}

}  // namespace graft::inspect

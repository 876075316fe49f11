// Recognizes classifiers by the operators next to an output, and otherwise by names and layers.
#include "verify/compare/classifiers.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cctype>
#include <initializer_list>
#include <optional>
#include <string_view>

#include "graft/error.hpp"
#include "graft/setting.hpp"
#include "onnx/schema.hpp"

namespace graft::verify {
namespace {

bool is_view(const onnx::Node& node) { return has_trait(node, onnx::trait::view) || node.is("Cast"); }

/// Returns the axis of the classes: the last axis with a size other than 1, but at least axis 1. Returns nothing for a
/// shape without classes.
std::optional<std::int64_t> class_axis(const onnx::Value& value) {
  if (!value.shape || value.shape->size() < 2) return std::nullopt;
  const Shape& shape = *value.shape;
  std::size_t axis = shape.size() - 1;
  while (axis > 1 && shape[axis] == Dim(1)) --axis;
  if (axis > 2 || shape[axis] == Dim(1)) return std::nullopt;
  return static_cast<std::int64_t>(axis);
}

/// Returns whether a node decides between the classes of a tensor.
bool decides(const onnx::Node& node, const onnx::Value& scores) {
  const auto axis = class_axis(scores);
  if (!axis || !is_any_of(node, {"Softmax", "LogSoftmax", "Hardmax", "ArgMax"})) return false;
  const std::int64_t along = node.int_or("axis", node.is("ArgMax") ? 0 : -1);
  return (along < 0 ? along + static_cast<std::int64_t>(scores.shape->size()) : along) == *axis;
}

bool is_decided_by_neighbors(const onnx::Value& output) {
  const onnx::Node* producer = output.producer;
  while (producer != nullptr && is_view(*producer) && producer->input(0) != nullptr) {
    producer = producer->input(0)->producer;
  }
  if (producer != nullptr && producer->output() != nullptr && !producer->is("ArgMax") &&
      decides(*producer, *producer->output())) {
    return true;
  }
  return std::any_of(output.uses.begin(), output.uses.end(),
                     [&](const onnx::Use& use) { return use.index == 0 && decides(*use.node, output); });
}

bool name_contains(const onnx::Value& output, std::initializer_list<std::string_view> words) {
  std::string name = output.name;
  std::transform(name.begin(), name.end(), name.begin(),
                 [](unsigned char letter) { return static_cast<char>(std::tolower(letter)); });
  return std::any_of(words.begin(), words.end(),
                     [&](std::string_view word) { return name.find(word) != std::string::npos; });
}

/// Returns whether a fully connected layer, or the pooling of a convolution, computes an output that no node reads. A
/// bias, a scale and an activation after the layer belong to it.
bool ends_network(const onnx::Value& output) {
  if (!output.uses.empty()) return false;
  const onnx::Node* node = output.producer;
  const auto belongs_to_layer = [](const onnx::Node& n) {
    return is_view(n) || is_any_of(n, {"Relu", "Sigmoid", "QuantizeLinear", "DequantizeLinear"}) ||
           (is_any_of(n, {"Add", "Sub", "Mul", "Div"}) && n.inputs.size() == 2 &&
            std::any_of(n.inputs.begin(), n.inputs.end(),
                        [](const onnx::Value* input) { return input != nullptr && input->constant(); }));
  };
  while (node != nullptr && belongs_to_layer(*node)) {
    const auto next = std::find_if(node->inputs.begin(), node->inputs.end(),
                                   [](const onnx::Value* input) { return input != nullptr && !input->constant(); });
    node = next == node->inputs.end() ? nullptr : (*next)->producer;
  }
  return node != nullptr && is_any_of(*node, {"Gemm", "MatMul", "Conv", "GlobalAveragePool"});
}

bool is_real_output(const onnx::Value& output) { return output.type && is_floating_point(*output.type); }

}  // namespace

OutputNames classifier_outputs(const onnx::Model& model) {
  OutputNames certain;
  OutputNames likely;
  for (const onnx::Value* output : model.graph().outputs()) {
    const auto axis = class_axis(*output);
    if (!axis || !is_real_output(*output)) continue;
    if (is_decided_by_neighbors(*output) || name_contains(*output, {"logit", "prob"})) {
      certain.insert(output->name);
    } else if (*axis == 1 && ends_network(*output) && !name_contains(*output, {"embed", "feature", "box"})) {
      likely.insert(output->name);
    }
  }
  return certain.empty() ? likely : certain;
}

OutputNames classifier_outputs(const onnx::Model& model, const std::vector<std::string>& requested) {
  if (requested.empty()) return classifier_outputs(model);
  std::vector<std::string> possible;
  for (const onnx::Value* output : model.graph().outputs()) {
    if (is_real_output(*output)) possible.push_back(output->name);
  }
  for (const std::string& name : requested) {
    if (std::find(possible.begin(), possible.end(), name) != possible.end()) continue;
    throw Error(fmt::format("{}: the model has no output '{}' of real numbers; its outputs of real numbers are {}",
                            setting_name(Setting::judge_outputs), name, fmt::join(possible, ", ")));
  }
  return {requested.begin(), requested.end()};
}

std::size_t classes_of(const std::vector<std::int64_t>& dims) {
  const auto last = std::find_if(dims.rbegin(), dims.rend(), [](std::int64_t size) { return size != 1; });
  return last == dims.rend() || last + 1 == dims.rend() ? 1 : static_cast<std::size_t>(*last);
}

std::string output_for_labels(const OutputNames& outputs) {
  if (outputs.size() == 1) return *outputs.begin();
  throw Error(fmt::format(
      "{}: the accuracy is measured for one output with the scores of a classifier, and {}\nName the output with {}",
      setting_name(Setting::labels),
      outputs.empty() ? "no output of the model is recognized as such"
                      : fmt::format("the model has several: {}", fmt::join(outputs, ", ")),
      setting_name(Setting::judge_outputs)));
}

CountedLabels count_correct(const onnx::TensorData& scores, std::span<const std::int64_t> labels) {
  CountedLabels counted;
  const auto numbers = scores.numbers();
  const std::size_t classes = classes_of(scores.dims);
  if (!numbers || classes < 2) return counted;
  for (std::size_t row = 0; row < numbers->size() / classes && row < labels.size(); ++row) {
    const auto begin = numbers->begin() + static_cast<std::ptrdiff_t>(row * classes);
    const auto largest = std::max_element(begin, begin + static_cast<std::ptrdiff_t>(classes)) - begin;
    ++counted.samples;
    counted.correct += largest == labels[row] ? 1 : 0;
  }
  return counted;
}

}  // namespace graft::verify

// Recognizes dropout by its random mask, which compares or rounds uniform random numbers and is multiplied with a
// scaled tensor.
#include "import/tensorflow/dropout.hpp"

#include <algorithm>
#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>

#include "import/tensorflow/graph.hpp"
#include "tensorflow/graph_def.pb.h"

namespace graft::tensorflow {
namespace {

template <std::size_t n>
bool is_one_of(const NodeDef& node, const std::array<std::string_view, n>& ops) {
  return std::find(ops.begin(), ops.end(), node.op()) != ops.end();
}

class Dropouts {
 public:
  explicit Dropouts(GraphDef& graph) {
    for (NodeDef& node : *graph.mutable_node()) by_name_.emplace(node.name(), &node);
  }

  /// Returns the input of the dropout whose last node is `node`; nothing for other nodes.
  [[nodiscard]] std::optional<TensorName> source(const NodeDef& node) const {
    const auto inputs = data_inputs(node);
    if (node.op() == "SelectV2" || node.op() == "Select") {
      return inputs.size() == 3 && is_mask(inputs[0]) ? unscaled(inputs[1]) : std::nullopt;
    }
    if (node.op() != "Mul" || inputs.size() != 2) return std::nullopt;
    if (is_mask(inputs[1])) return unscaled(inputs[0]);
    return is_mask(inputs[0]) ? unscaled(inputs[1]) : std::nullopt;
  }

 private:
  [[nodiscard]] const NodeDef* find(const TensorName& name) const {
    const auto found = by_name_.find(name.node);
    return found == by_name_.end() ? nullptr : found->second;
  }

  /// Returns the node that computes a tensor, ignoring nodes that only copy or convert the result.
  [[nodiscard]] const NodeDef* source_of(TensorName name) const {
    constexpr std::array<std::string_view, 3> copies = {"Identity", "Cast", "StopGradient"};
    const NodeDef* node = find(name);
    for (int step = 0; step < most_steps && node != nullptr && is_one_of(*node, copies); ++step) {
      const auto inputs = data_inputs(*node);
      if (inputs.empty()) return nullptr;
      name = inputs[0];
      node = find(name);
    }
    return node;
  }

  /// Returns whether a tensor contains uniform random numbers, possibly scaled or shifted by up to `steps` nodes.
  [[nodiscard]] bool is_uniform(const TensorName& name, int steps = most_steps) const {
    constexpr std::array<std::string_view, 4> uniform = {"RandomUniform", "StatelessRandomUniform",
                                                         "StatelessRandomUniformV2", "RandomUniformInt"};
    constexpr std::array<std::string_view, 4> moving = {"Add", "AddV2", "Mul", "Sub"};
    const NodeDef* node = source_of(name);
    if (node == nullptr || steps == 0) return false;
    if (is_one_of(*node, uniform)) return true;
    if (!is_one_of(*node, moving)) return false;
    // Only one of the two inputs is random; the other input is a range or the rate.
    const auto inputs = data_inputs(*node);
    return std::any_of(inputs.begin(), inputs.end(),
                       [&](const TensorName& input) { return is_uniform(input, steps - 1); });
  }

  [[nodiscard]] bool is_mask(const TensorName& name) const {
    constexpr std::array<std::string_view, 4> comparisons = {"Greater", "GreaterEqual", "Less", "LessEqual"};
    const NodeDef* node = source_of(name);
    if (node == nullptr) return false;
    const auto inputs = data_inputs(*node);
    if (node->op() == "Floor") return inputs.size() == 1 && is_uniform(inputs[0]);
    return is_one_of(*node, comparisons) && inputs.size() == 2 && (is_uniform(inputs[0]) || is_uniform(inputs[1]));
  }

  /// Returns x if a tensor is `x / keep` or `x * scale`, with which tf.nn.dropout scales the elements that remain;
  /// nothing for other tensors. x must be the first input.
  [[nodiscard]] std::optional<TensorName> unscaled(const TensorName& name) const {
    constexpr std::array<std::string_view, 3> scaling = {"Div", "Mul", "RealDiv"};
    const NodeDef* node = find(name);
    if (node == nullptr || !is_one_of(*node, scaling)) return std::nullopt;
    const auto inputs = data_inputs(*node);
    return inputs.size() == 2 ? std::optional(inputs[0]) : std::nullopt;
  }

  static constexpr int most_steps = 6;
  std::unordered_map<std::string, NodeDef*> by_name_;
};

}  // namespace

std::size_t remove_dropout(GraphDef& graph) {
  const Dropouts dropouts(graph);
  std::size_t count = 0;
  for (NodeDef& node : *graph.mutable_node()) {
    const auto source = dropouts.source(node);
    if (!source) continue;
    node.set_op("Identity");
    node.clear_input();
    node.add_input(to_string(*source));
    ++count;
  }
  return count;
}

}  // namespace graft::tensorflow

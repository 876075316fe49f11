// The nodes that TensorRT does not run determine the two possible cuts; only the side that goes to the host is a
// choice.
#include "inspect/cut.hpp"

#include <algorithm>
#include <unordered_set>
#include <utility>

#include "inspect/arithmetic.hpp"
#include "onnx/extract.hpp"
#include "onnx/schema.hpp"

namespace graft::inspect {
namespace {

using Nodes = std::unordered_set<const onnx::Node*>;
using Values = std::unordered_set<const onnx::Value*>;

/// The maximum number of nodes that one step of move_to_host() moves. Moving more has not been observed to save bytes.
constexpr std::size_t longest_move = 32;

/// The nodes of a graph in topological order, except nodes that compute only from constants and from shapes of inputs.
class Order {
 public:
  Order(const onnx::Graph& graph, const std::function<bool(const onnx::Node&)>& runs_on_host) {
    for (const onnx::Node* node : graph.nodes()) {
      if (node->is("Constant")) continue;
      if (runs_on_host(*node)) {
        refused.insert(node);
      } else if (is_free(*node)) {
        for (const onnx::Value* output : node->outputs) free_.insert(output);
        continue;
      }
      nodes.push_back(node);
    }
  }

  [[nodiscard]] bool crosses(const onnx::Value& value) const {
    return value.producer != nullptr && !value.producer->is("Constant") && !free_.contains(&value);
  }

  /// Returns `start` and the nodes that depend on it, directly or through other nodes.
  [[nodiscard]] Nodes what_comes_of(const Nodes& start) const {
    Nodes found = start;
    for (const onnx::Node* node : nodes) {
      if (found.contains(node)) continue;
      for (const onnx::Value* value : onnx::values_read_by(*node)) {
        if (crosses(*value) && found.contains(value->producer)) found.insert(node);
      }
    }
    return found;
  }

  /// Returns `start` and the nodes on which it depends, directly or through other nodes.
  [[nodiscard]] Nodes what_leads_to(const Nodes& start) const {
    Nodes found = start;
    for (auto node = nodes.rbegin(); node != nodes.rend(); ++node) {
      if (!found.contains(*node)) continue;
      for (const onnx::Value* value : onnx::values_read_by(**node)) {
        if (crosses(*value)) found.insert(value->producer);
      }
    }
    return found;
  }

  std::vector<const onnx::Node*> nodes;
  Nodes refused;

 private:
  [[nodiscard]] bool is_free(const onnx::Node& node) const {
    if (onnx::has_trait(node, onnx::trait::random)) return false;
    const std::vector<const onnx::Value*> read = onnx::values_read_by(node);
    if (onnx::has_trait(node, onnx::trait::reads_shape)) {
      return std::all_of(read.begin(), read.end(), [&](const onnx::Value* value) { return !crosses(*value); });
    }
    return std::all_of(read.begin(), read.end(), [&](const onnx::Value* value) {
      return value->constant().has_value() || free_.contains(value);
    });
  }

  Values free_;
};

double arithmetic_without(const Order& order, const Nodes& without) {
  double sum = 0;
  for (const onnx::Node* node : order.nodes) sum += without.contains(node) ? 0 : arithmetic_of(*node);
  return sum;
}

/// Returns the values that the first model hands to the second: nodes outside `second` compute them, and nodes in
/// `second` read them. They are in topological order.
std::vector<const onnx::Value*> handed_over(const Order& order, const Nodes& second) {
  Values read;
  for (const onnx::Node* node : order.nodes) {
    if (!second.contains(node)) continue;
    for (const onnx::Value* value : onnx::values_read_by(*node)) {
      if (order.crosses(*value) && !second.contains(value->producer)) read.insert(value);
    }
  }
  std::vector<const onnx::Value*> values;
  for (const onnx::Node* node : order.nodes) {
    for (const onnx::Value* output : node->outputs) {
      if (read.contains(output)) values.push_back(output);
    }
  }
  return values;
}

/// Returns the total size of the values in bytes, or nothing if the type or rank of one of them is unknown.
std::optional<double> total_bytes(const std::vector<const onnx::Value*>& values) {
  double sum = 0;
  for (const onnx::Value* value : values) {
    const std::optional<double> bytes = bytes_of(*value);
    if (!bytes) return std::nullopt;
    sum += *bytes;
  }
  return sum;
}

/// Adds nodes to `host`, the nodes that the host runs on the results of TensorRT. The added nodes only move data. They
/// are added from the last one on, as long as this reduces the total size of the values that TensorRT hands to the
/// host.
void move_to_host(const Order& order, Nodes& host) {
  std::optional<double> bytes = total_bytes(handed_over(order, host));
  for (auto node = order.nodes.rbegin(); bytes && node != order.nodes.rend(); ++node) {
    if (host.contains(*node) || arithmetic_of(**node) != 0) continue;
    Nodes moved = order.what_comes_of({*node});
    std::erase_if(moved, [&](const onnx::Node* other) { return host.contains(other); });
    const bool only_moves_data =
        moved.size() <= longest_move &&
        std::all_of(moved.begin(), moved.end(), [](const onnx::Node* other) { return arithmetic_of(*other) == 0; });
    if (!only_moves_data) continue;
    moved.insert(host.begin(), host.end());
    const std::optional<double> after = total_bytes(handed_over(order, moved));
    if (after && *after < *bytes) {
      host = std::move(moved);
      bytes = after;
    }
  }
}

bool is_made_by(const onnx::Value& value, const std::vector<const onnx::Node*>& nodes) {
  return value.producer != nullptr && std::find(nodes.begin(), nodes.end(), value.producer) != nodes.end();
}

}  // namespace

std::optional<Cut> find_cut(const onnx::Model& model, const std::function<bool(const onnx::Node&)>& runs_on_host) {
  const Order order(model.graph(), runs_on_host);
  Nodes behind = order.what_comes_of(order.refused);
  Nodes before = order.what_leads_to(order.refused);
  Cut cut;
  cut.arithmetic = arithmetic_without(order, {});
  const double with_end_on_host = arithmetic_without(order, behind);
  const double with_start_on_host = arithmetic_without(order, before);
  cut.tensorrt_is_first = with_end_on_host >= with_start_on_host;
  cut.arithmetic_in_tensorrt = std::max(with_end_on_host, with_start_on_host);
  if (order.refused.empty() || cut.arithmetic_in_tensorrt == 0) return std::nullopt;
  Nodes& host = cut.tensorrt_is_first ? behind : before;
  if (cut.tensorrt_is_first) move_to_host(order, host);
  for (const onnx::Node* node : order.nodes) (host.contains(node) ? cut.host : cut.tensorrt).push_back(node);
  cut.between = handed_over(order, cut.tensorrt_is_first ? host : Nodes(cut.tensorrt.begin(), cut.tensorrt.end()));
  // Sequences and tensors of unknown types cannot be inputs of a half.
  const bool are_tensors = std::all_of(cut.between.begin(), cut.between.end(),
                                       [](const onnx::Value* value) { return value->type.has_value(); });
  return are_tensors ? std::optional(std::move(cut)) : std::nullopt;
}

Halves halves_of(const onnx::Model& model, const Cut& cut) {
  const std::vector<onnx::Value*>& inputs = model.graph().inputs();
  std::vector<const onnx::Value*> first_outputs = cut.between;
  std::vector<const onnx::Value*> second_outputs;
  for (const onnx::Value* output : model.graph().outputs()) {
    const bool is_first = is_made_by(*output, cut.tensorrt) == cut.tensorrt_is_first;
    std::vector<const onnx::Value*>& outputs = is_first ? first_outputs : second_outputs;
    if (std::find(outputs.begin(), outputs.end(), output) == outputs.end()) outputs.push_back(output);
  }
  const auto half = [&](const std::vector<const onnx::Value*>& handed, const std::vector<const onnx::Value*>& outputs) {
    std::vector<const onnx::Value*> read(inputs.begin(), inputs.end());
    read.insert(read.end(), handed.begin(), handed.end());
    onnx::Model part = extract(model, read, outputs);
    onnx::Graph& graph = part.graph();
    const std::vector<onnx::Value*> taken = graph.inputs();
    for (onnx::Value* input : taken) {
      const onnx::Value* whole = model.graph().find_local(input->name);
      if (whole->is_input && whole->initializer) graph.set_initializer(*input, *whole->initializer);
      if (!input->is_unused()) continue;
      graph.set_is_input(*input, false);
      graph.remove_value(*input);
    }
    part.source = model.source;
    return part;
  };
  onnx::Model first = half({}, first_outputs);
  onnx::Model second = half(cut.between, second_outputs);
  if (!cut.tensorrt_is_first) std::swap(first, second);
  return {.tensorrt = std::move(first), .host = std::move(second)};
}

}  // namespace graft::inspect

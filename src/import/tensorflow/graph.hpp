// Prepares a TensorFlow graph before its nodes are converted: inlines calls and finds inputs and outputs.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace graft::tensorflow {

class FunctionDefLibrary;
class GraphDef;
class NodeDef;

/// The output of a node that an input names: "a" is the first one of a, "a:2" the third.
struct TensorName {
  std::string node;
  std::int64_t output = 0;
  friend auto operator<=>(const TensorName&, const TensorName&) = default;  // NOLINT(modernize-use-nullptr): it errs
};

/// Returns whether an input such as "^a" only orders nodes (a runs first) and carries no data.
[[nodiscard]] inline bool is_control(std::string_view input) { return input.starts_with('^'); }
/// Parses the name of a tensor. Throws Error for text of another form.
[[nodiscard]] TensorName parse_tensor_name(const std::string& text);
/// Returns "a" for the first output of a and "a:2" for others, which are the names of tensors in ONNX.
[[nodiscard]] std::string to_string(const TensorName& name);

/// Replaces PartitionedCall, StatefulPartitionedCall and nodes named after a function by the nodes of the function,
/// named `call/node`. `room` is the number of bytes that copies may still take, and is reduced. Throws Error for
/// recursion, for missing functions, and if `room` does not suffice.
void inline_calls(GraphDef& graph, const FunctionDefLibrary& library, std::size_t& room);

/// Returns the data inputs of a node, in order.
[[nodiscard]] std::vector<TensorName> data_inputs(const NodeDef& node);

/// Returns the first output of each node that computes a result and that no node reads.
[[nodiscard]] std::vector<TensorName> outputs_of(const GraphDef& graph);

}  // namespace graft::tensorflow

// Prepares a TensorFlow graph for conversion: inlines function calls and finds inputs and outputs.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace graft::tensorflow {

class FunctionDefLibrary;
class GraphDef;
class NodeDef;

/// A tensor as an input names it: "a" is the first output of the node a, "a:2" is its third output.
struct TensorName {
  std::string node;
  std::int64_t output = 0;
  friend auto operator<=>(const TensorName&, const TensorName&) = default;  // NOLINT(modernize-use-nullptr): it errs
};

/// Returns whether an input such as "^a" only orders nodes (a runs first) and carries no data.
[[nodiscard]] inline bool is_control(std::string_view input) { return input.starts_with('^'); }
/// Parses the name of a tensor. Throws Error for malformed names.
[[nodiscard]] TensorName parse_tensor_name(const std::string& text);
/// Returns the tensor's name in ONNX: "a" for the first output of a, "a:2" for the third.
[[nodiscard]] std::string to_string(const TensorName& name);

/// Replaces PartitionedCall, StatefulPartitionedCall and nodes named after a function with the nodes of the function,
/// which are renamed `call/node`. `room` is the number of bytes that copies may still take; the function reduces it.
/// Throws Error for recursion, for missing functions, and if `room` does not suffice.
void inline_calls(GraphDef& graph, const FunctionDefLibrary& library, std::size_t& room);

/// Returns the data inputs of a node, in order.
[[nodiscard]] std::vector<TensorName> data_inputs(const NodeDef& node);

/// Returns the first output of each node that computes a result and that no node reads.
[[nodiscard]] std::vector<TensorName> outputs_of(const GraphDef& graph);

}  // namespace graft::tensorflow

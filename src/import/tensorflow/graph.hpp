// What happens to a TensorFlow graph before its nodes are converted: calls inlined, branches of training dropped.
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

/// "^a" says that a runs first; no data flow.
[[nodiscard]] inline bool is_control(std::string_view input) { return input.starts_with('^'); }
/// Throws Error for text that is no such name.
[[nodiscard]] TensorName parse_tensor_name(const std::string& text);
/// "a" for the first output of a, "a:2" for others: the names that tensors get in ONNX.
[[nodiscard]] std::string to_string(const TensorName& name);

/// Replaces PartitionedCall, StatefulPartitionedCall and nodes named after a function by the nodes of the function,
/// called `call/node`. `room` are the bytes that their copies may take, which are counted down. Throws Error for
/// recursion, for functions that are not there, and for want of room.
void inline_calls(GraphDef& graph, const FunctionDefLibrary& library, std::size_t& room);

/// The data inputs of a node, in order.
[[nodiscard]] std::vector<TensorName> data_inputs(const NodeDef& node);

/// The nodes that nothing reads and that give a result: what the graph is there for.
[[nodiscard]] std::vector<TensorName> outputs_of(const GraphDef& graph);

}  // namespace graft::tensorflow

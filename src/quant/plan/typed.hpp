// Converts a network to f16 or bf16: decides which nodes compute in the type, inserts Cast nodes, and converts
// constants.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "graft/report/quantize.hpp"
#include "onnx/node_ref.hpp"
#include "verify/localize/emulate.hpp"

namespace graft::quant {

using report::AdjustedConstant;

/// Returns whether a value is f32. Returns false for null, which stands for an input that is left out.
[[nodiscard]] inline bool is_f32(const onnx::Value* value) {
  return value != nullptr && value->type == onnx::ElementType::f32;
}

/// The metadata key on nodes that are kept in f32. The value is "f32: " followed by the reason.
inline constexpr std::string_view precision_note = "graft.precision";

/// Returns the element type of f16 or bf16. Throws Error (internal) for int8.
[[nodiscard]] onnx::ElementType element_type_of(report::Precision precision);

/// Returns the key of a node in plans: the name of its first output, which every node has.
[[nodiscard]] const std::string& key_of(const onnx::Node& node);

/// Returns the reason for not converting a node in Graft's domain whose operator is not loaded.
[[nodiscard]] std::string unknown_operator_reason();

/// Returns whether a node computes the same result in any type, because it only moves, converts or creates elements, or
/// has no f32 output.
[[nodiscard]] bool works_in_any_type(const onnx::Node& node);

/// Returns why the program that will run the model refuses a node with the types of its tensors. Returns nothing if the
/// program accepts the node, or if that is unknown.
using NodeRefusal = std::function<std::optional<std::string>(const onnx::Node&)>;

struct TypedOptions {
  report::Precision precision = report::Precision::f16;
  bool typed_io = false;  ///< Whether the inputs and outputs of the model are converted as well.
  /// Whether nodes whose results a QuantizeLinear reads may be converted. Every int8 node must then be in `kept`.
  bool narrow_before_int8 = false;
  std::map<std::string, std::string, std::less<>> kept;  ///< Maps the key_of a node to keep in f32 to the reason.
  /// A callback that refuses nodes. A node that it refuses in the narrow type, and not in f32, is kept in f32.
  NodeRefusal refusal = {};
};

enum class NodeType : std::uint8_t {
  narrow,
  kept,     ///< The node computes in f32.
  follows,  ///< The node computes in f32 because its neighbors do, although it supports the narrow type.
  none,     ///< The node has no f32 tensors.
};

/// The decision on a node.
struct TypedNode {
  NodeRef node;  ///< The node; its id equals key_of(node).
  NodeType type = NodeType::none;
  std::string reason;  ///< Why the node is kept in f32.
  /// Whether the node is kept because of its form, as opposed to TypedOptions::kept.
  bool by_form = false;
  /// The type of the node's tensors if that is f16, bf16 or f64 and there are no f32 tensors.
  std::optional<onnx::ElementType> before = {};
};

/// Returns the type in which the node computes, "f16", "bf16", "f32" or "f64"; empty if it has no tensors of these
/// types.
[[nodiscard]] std::string type_name(const TypedNode& node, report::Precision precision);

struct TypedModel {
  onnx::Model model;
  std::vector<TypedNode> nodes;  ///< The nodes of the main graph in order, without Constant nodes.
  std::vector<AdjustedConstant> adjusted;
  std::size_t casts = 0;  ///< The number of Cast nodes that were added.
};

/// Returns a copy in the form that make_typed expects: inputs with a default are constants, calls of functions that are
/// not Graft's are inlined, the opset is 17 or the lowest that has the type, and types are inferred. The keys of its
/// nodes stay valid in the result of make_typed.
[[nodiscard]] onnx::Model prepare_for_types(const onnx::Model& model, report::Precision precision);

/// Returns a note on the nodes in f64, which are not converted, and on what to do about them; nothing if there are
/// none. `wanted` is the name of the type to which f32 nodes are converted.
[[nodiscard]] std::optional<std::string> note_on_f64(const onnx::Model& prepared, std::string_view wanted);

/// Returns the prepared model in the narrow type. Nodes whose operators accept the type compute in it. These nodes stay
/// in f32: kept nodes, nodes for which ONNX allows f32 only, nodes that TypedOptions::refusal refuses in the type,
/// operators of other libraries, nodes that read DequantizeLinear or are read by QuantizeLinear, and the subgraphs of
/// If, Loop and Scan. Graft's operators use their own f16 or bf16 form. A tensor is cast once for all readers in the
/// other type. Nodes that only move, create or read elements have the type of their neighbors, so that no Cast is
/// followed by its inverse. A constant is converted once. Numbers beyond the range become the largest number if they
/// represent infinity (a mask), and an epsilon that would become 0 becomes the smallest number.
[[nodiscard]] TypedModel make_typed(const onnx::Model& prepared, const TypedOptions& options);

}  // namespace graft::quant

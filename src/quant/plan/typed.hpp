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

/// Returns onnx::ElementType::f16 or bf16 for these precisions. Throws Error (internal) for int8.
[[nodiscard]] onnx::ElementType element_type_of(report::Precision precision);

/// Returns the name of a node's first output, which identifies the node in plans and maps. Every node has one.
[[nodiscard]] const std::string& key_of(const onnx::Node& node);

/// Returns the reason, for reports, why a node in Graft's domain is not converted if no loaded library has its
/// operator.
[[nodiscard]] std::string unknown_operator_reason();

/// Returns whether a node computes the same result in any type, because it only moves, converts or creates elements, or
/// has no f32 output.
[[nodiscard]] bool works_in_any_type(const onnx::Node& node);

/// A function that returns why the program that will run the model refuses a node with the current types of its
/// tensors, or nothing if it accepts the node or this is unknown.
using NodeRefusal = std::function<std::optional<std::string>(const onnx::Node&)>;

struct TypedOptions {
  report::Precision precision = report::Precision::f16;
  bool typed_io = false;  ///< Whether the inputs and outputs of the model are converted as well.
  /// Whether nodes whose results a QuantizeLinear reads may be converted to the narrow type (f16 or bf16). Every int8
  /// node must then be in `kept`.
  bool narrow_before_int8 = false;
  std::map<std::string, std::string, std::less<>> kept;  ///< Maps the key_of a node to keep in f32 to the reason.
  /// Keeps a node in f32 if this function refuses it in the narrow type (f16 or bf16) but not in f32. May be empty.
  NodeRefusal refusal = {};
};

enum class NodeType : std::uint8_t {
  narrow,
  kept,     ///< The node computes in f32.
  follows,  ///< The node computes in f32 because its neighbors do, although it supports the narrow type.
  none,     ///< The node has no f32 tensors.
};

/// The type that was chosen for a node, and why.
struct TypedNode {
  NodeRef node;  ///< The node; its id equals key_of(node).
  NodeType type = NodeType::none;
  std::string reason;  ///< Why the node is kept in f32.
  /// Whether the node is kept in f32 because of its operator, attributes or neighbors, and not because of
  /// TypedOptions::kept.
  bool by_form = false;
  /// f16, bf16 or f64 if the original node has tensors of that type and no f32 tensors; otherwise nothing.
  std::optional<onnx::ElementType> before = {};
};

/// Returns "f16", "bf16", "f32" or "f64", the type in which the node computes after the conversion to `precision`;
/// empty if it has no tensors of these types.
[[nodiscard]] std::string type_name(const TypedNode& node, report::Precision precision);

struct TypedModel {
  onnx::Model model;
  std::vector<TypedNode> nodes;  ///< The nodes of the main graph in order, without Constant nodes.
  std::vector<AdjustedConstant> adjusted;
  std::size_t casts = 0;  ///< The number of Cast nodes that were added.
};

/// Returns a copy of the model for make_typed: inputs with a default become constants, calls of functions that are not
/// Graft's are inlined, the opset is 17 or the lowest later one that supports the type of `precision`, and types are
/// inferred. key_of() of its nodes stays valid in the result of make_typed.
[[nodiscard]] onnx::Model prepare_for_types(const onnx::Model& model, report::Precision precision);

/// Returns a note that names the nodes in f64, which are not converted, and says what to do about them, or nothing if
/// the model has no such nodes. `wanted` is the name of the type to which f32 nodes are converted.
[[nodiscard]] std::optional<std::string> note_on_f64(const onnx::Model& prepared, std::string_view wanted);

/// Returns the prepared model in the narrow type (f16 or bf16). Nodes compute in it if their operators support it,
/// except nodes in `kept`, nodes that TypedOptions::refusal refuses, operators of other libraries, nodes that read
/// DequantizeLinear or are read by QuantizeLinear, and the subgraphs of If, Loop and Scan. A tensor is cast once for
/// all readers of the other type. Nodes that only move, create or read elements take the type of their neighbors, so
/// that no Cast is followed by its inverse. A constant is converted once. Values beyond the range become the largest
/// number if they represent infinity (a mask), and an epsilon that would become 0 becomes the smallest number.
[[nodiscard]] TypedModel make_typed(const onnx::Model& prepared, const TypedOptions& options);

}  // namespace graft::quant

// Converts a network to f16 or bf16: decides which nodes compute in the type, inserts casts, and converts constants.
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

/// Returns whether a value is f32. Returns false for null, an input that is left out.
[[nodiscard]] inline bool is_f32(const onnx::Value* value) {
  return value != nullptr && value->type == onnx::ElementType::f32;
}

/// The metadata key on nodes that stay in f32. Its value is "f32: " and the reason.
inline constexpr std::string_view precision_note = "graft.precision";

/// Returns the element type of f16 or bf16. Throws Error (internal) for int8.
[[nodiscard]] onnx::ElementType element_type_of(verify::Precision precision);

/// Returns the key of a node in decisions: the name of its first output, which every node has.
[[nodiscard]] const std::string& key_of(const onnx::Node& node);

/// Returns why a node of Graft's domain stays as it is if no loaded operator has its name.
[[nodiscard]] std::string unknown_operator_reason();

/// Returns whether a node computes the same in any type: it only moves elements, converts them, fills a tensor, or has
/// no f32 output.
[[nodiscard]] bool works_in_any_type(const onnx::Node& node);

/// Returns why the program that will run a model refuses a node with the types of its tensors, or nothing if the
/// program builds the node or that is unknown.
using NodeRefusal = std::function<std::optional<std::string>(const onnx::Node&)>;

struct TypedOptions {
  verify::Precision precision = verify::Precision::f16;
  bool typed_io = false;  ///< Whether inputs and outputs get the type as well.
  /// Whether nodes may leave f32 whose results QuantizeLinear reads; every int8 node is then in `kept`.
  bool narrow_before_int8 = false;
  std::map<std::string, std::string, std::less<>> kept;  ///< Nodes that stay in f32, by key_of, and why.
  NodeRefusal refusal = {};  ///< Nodes that this refuses in the type, and not in f32, stay in f32.
};

enum class NodeType : std::uint8_t {
  narrow,
  kept,     ///< The node computes in f32.
  follows,  ///< The node computes in f32 like its neighbors, though it works in the other type as well.
  none,     ///< The node has no f32 tensors.
};

/// The decision about a node.
struct TypedNode {
  NodeRef node;  ///< The node; its id is key_of.
  NodeType type = NodeType::none;
  std::string reason;  ///< Why the node is kept.
  /// Whether the node is kept because of its form, and not because of TypedOptions::kept.
  bool by_form = false;
  /// f16, bf16 or f64, if the node has tensors in one of them and no f32 tensors.
  std::optional<onnx::ElementType> before = {};
};

/// Returns the type that the node computes in, "f16", "bf16", "f32" or "f64"; empty if it has no tensors of these.
[[nodiscard]] std::string type_name(const TypedNode& node, verify::Precision precision);

struct TypedModel {
  onnx::Model model;
  std::vector<TypedNode> nodes;  ///< The nodes of the main graph, in its order; without Constant.
  std::vector<AdjustedConstant> adjusted;
  std::size_t casts = 0;  ///< The number of casts that were added.
};

/// Returns a copy in the form that make_typed works on: inputs with a default are constants, calls of functions that
/// are not Graft's are inlined, the operator set is 17 or the one that has the type, and types are inferred. The keys
/// of its nodes stay valid in the result of make_typed.
[[nodiscard]] onnx::Model prepare_for_types(const onnx::Model& model, verify::Precision precision);

/// Returns a note on the nodes in f64, which stay as they are, and what to do about them; nothing where there are none.
/// `wanted` is the name of the type that nodes in f32 get.
[[nodiscard]] std::optional<std::string> note_on_f64(const onnx::Model& prepared, std::string_view wanted);

/// Returns the prepared model in that type. Nodes whose operators accept the type compute in it. These stay in f32:
/// kept nodes, nodes that ONNX has in f32 only, nodes that TypedOptions::refusal refuses in the type, operators of
/// other libraries, nodes that read DequantizeLinear or are read by QuantizeLinear, and the graphs inside If, Loop and
/// Scan. Graft's operators use their own f16 or bf16 form. A tensor is cast once for all its readers in the other type;
/// nodes that only move, create or read elements have the type of their neighbors, so that no cast is followed by one
/// back. A constant is converted once; numbers beyond the range become the largest where they stand for infinity (a
/// mask), and an epsilon that would become 0 becomes the smallest.
[[nodiscard]] TypedModel make_typed(const onnx::Model& prepared, const TypedOptions& options);

}  // namespace graft::quant

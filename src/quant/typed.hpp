// A network in f16 or bf16: which nodes compute in it, casts between them and the others, constants converted.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "onnx/node_ref.hpp"
#include "verify/emulate.hpp"

namespace graft::quant {

/// False for null too, an input that is left out.
[[nodiscard]] inline bool is_f32(const onnx::Value* value) {
  return value != nullptr && value->type == onnx::ElementType::f32;
}

/// On nodes that stay in f32: "f32: " and why.
inline constexpr std::string_view precision_note = "graft.precision";

/// f16 or bf16; throws Error (internal) for int8.
[[nodiscard]] onnx::ElementType element_type_of(verify::Precision precision);

/// What nodes are called in a decision about them: by the name of their first output, which every node has.
[[nodiscard]] const std::string& key_of(const onnx::Node& node);

/// Why a node of Graft's domain stays as it is where no loaded operator has its name.
[[nodiscard]] std::string unknown_operator_reason();

/// Whether it does the same in any type: it only moves elements, converts them, fills a tensor, or gives no f32.
[[nodiscard]] bool works_in_any_type(const onnx::Node& node);

/// Returns why the program that will run a model refuses a node with the types that its tensors have, and nothing where
/// it builds the node or where that is unknown.
using NodeRefusal = std::function<std::optional<std::string>(const onnx::Node&)>;

struct TypedOptions {
  verify::Precision precision = verify::Precision::f16;
  bool typed_io = false;  ///< Inputs and outputs take the type as well.
  /// What gives a tensor that QuantizeLinear reads may leave f32 as well: whatever is int8 is among `kept`.
  bool narrow_before_int8 = false;
  std::map<std::string, std::string, std::less<>> kept;  ///< Nodes that stay in f32, by key_of, and why.
  NodeRefusal refusal = {};  ///< Nodes that it refuses in the type, and not in f32, stay in f32.
};

enum class NodeType : std::uint8_t {
  narrow,
  kept,     ///< In f32.
  follows,  ///< In f32 since all around it is, though it would do in the other type as well.
  none,     ///< It has no f32 tensors.
};

/// What became of a node.
struct TypedNode {
  NodeRef node;  ///< Its id is key_of.
  NodeType type = NodeType::none;
  std::string reason;                            ///< Why it is kept.
  bool by_form = false;                          ///< It is kept for what it is, not because of TypedOptions::kept.
  std::optional<onnx::ElementType> before = {};  ///< f16 or bf16, where it was in one of them and has no f32 tensors.
};

/// Returns the type that the node computes in, "f16" or "f32"; empty where it has no tensors of these.
[[nodiscard]] std::string type_name(const TypedNode& node, verify::Precision precision);

/// A constant of which the type does not hold a number, and what stands there instead.
struct AdjustedConstant {
  std::string name;
  std::string change;  ///< "-1e+09 became -65504"
};

struct TypedModel {
  onnx::Model model;
  std::vector<TypedNode> nodes;  ///< Of the main graph, in its order; without Constant.
  std::vector<AdjustedConstant> adjusted;
  std::size_t casts = 0;  ///< That were added.
};

/// A copy in the form that make_typed works on: inputs with a default are constants, calls of functions that are not
/// Graft's inlined, operator set 17 or the one that has the type, types inferred. Its nodes' keys stay good in what
/// make_typed gives.
[[nodiscard]] onnx::Model prepare_for_types(const onnx::Model& model, verify::Precision precision);

/// The prepared model in that type. Nodes of operators that take it compute in it; kept ones, those that ONNX has in
/// f32 only, those that TypedOptions::refusal refuses in the type, operators of other libraries, and what reads
/// DequantizeLinear or is read by QuantizeLinear stay in f32, and so do the insides of If, Loop and Scan. Graft's
/// operators take their own f16 or bf16 form. A tensor is cast once for all who read it in the other type; nodes that
/// only move elements, make or read them take the type of those around them, so that no cast is followed by one back. A
/// constant is converted once; numbers beyond the range become the largest where they stand for infinity (a mask), and
/// an epsilon that would become 0 the smallest.
[[nodiscard]] TypedModel make_typed(const onnx::Model& prepared, const TypedOptions& options);

}  // namespace graft::quant

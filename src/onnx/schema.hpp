// What ONNX says of each of its operators (schema.inc and schema_versions.inc, generated), and what Graft has to know
// besides (traits.inc).
#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "graft/attribute.hpp"

namespace graft::onnx {

struct Node;

/// One attribute of a schema.
struct AttributeSchema {
  std::string_view name;
  /// f, i, s: one float, integer or text; F, I, S: a list; t: a tensor; -: another.
  char kind = '-';
  bool is_required = false;
};

/// An operator of ai.onnx. Inputs, outputs and attributes are those that operator set 17 or a newer one knows.
struct OperatorSchema {
  std::string_view name;
  std::int64_t since = 0;    ///< The operator set in which it first appears.
  std::int64_t removed = 0;  ///< The operator set from which on ONNX deprecates it; 0: none.
  std::size_t fewest_inputs = 0;
  std::size_t most_inputs = 0;
  std::size_t most_outputs = 0;
  std::string_view attributes;  ///< "axis:i=0 mode:s to:i!", in the letters of AttributeSchema; !: required.

  [[nodiscard]] std::vector<std::string> attribute_names() const;
  [[nodiscard]] bool has_attribute(std::string_view attribute) const;
  /// As AttributeSchema::kind; '-' for an attribute that it does not have.
  [[nodiscard]] char attribute_kind(std::string_view attribute) const;
  /// Nothing for an attribute that it does not have, and for kinds that no AttributeValue holds.
  [[nodiscard]] std::optional<AttributeType> attribute_type(std::string_view attribute) const;
  /// The default in the newest operator set; nothing where there is none.
  [[nodiscard]] std::optional<AttributeValue> attribute_default(std::string_view attribute) const;
};

/// Null for a name that ai.onnx never had.
[[nodiscard]] const OperatorSchema* find_schema(std::string_view op_type);
/// Also null where the operator set does not have the operator yet, or no longer.
[[nodiscard]] const OperatorSchema* find_schema(std::string_view op_type, std::int64_t opset);
/// An operator of ai.onnx as a single operator set has it.
struct SchemaVersion {
  std::string_view name;
  std::int64_t since = 0;  ///< The operator set from which on it is so.
  std::size_t fewest_inputs = 0;
  std::size_t most_inputs = 0;
  std::size_t most_outputs = 0;
  std::string_view attribute_text;  ///< As OperatorSchema::attributes.

  [[nodiscard]] std::vector<AttributeSchema> attributes() const;
};

/// Nothing where the operator set, 17 or newer, does not have the operator.
[[nodiscard]] std::optional<SchemaVersion> find_schema_version(std::string_view op_type, std::int64_t opset);

/// What keeps a node of ai.onnx from being one of this operator set, 17 or newer, and what to write instead: its
/// operator, the number of its inputs or outputs, an attribute. Nothing where its schema has it so. Types and shapes
/// are not looked at.
[[nodiscard]] std::optional<std::string> schema_fault(const Node& node, std::int64_t opset);

/// All operators, sorted by name; those that ONNX deprecates too.
[[nodiscard]] std::vector<const OperatorSchema*> all_schemas();

/// A set of properties of an operator, joined by |. They hold for every node of the operator, whatever its attributes.
using Traits = std::uint32_t;
namespace trait {
/// The result has the elements of input 0, all of them, in the same order in memory: only the shape differs.
inline constexpr Traits view = 1U << 0U;
/// The result has the elements of input 0, each once, in another order.
inline constexpr Traits permutation = 1U << 1U;
/// Each element of the result is an element of a data input; which one does not depend on the elements themselves. The
/// data inputs are all of Concat's, and input 0 of the others.
inline constexpr Traits selection = 1U << 2U;
/// The elements of input 0, each once, in whatever shape and order.
inline constexpr Traits rearranges = view | permutation;
/// Copies elements and computes none.
inline constexpr Traits moves_data = rearranges | selection;
/// One tensor; each element of the result depends on the element at the same place alone. Other inputs are scalars, or
/// give a type.
inline constexpr Traits elementwise = 1U << 3U;
/// Several tensors that broadcast to each other; each element of the result depends on the elements at its place alone.
inline constexpr Traits broadcasting = 1U << 4U;
/// The order of the inputs does not matter.
inline constexpr Traits commutative = 1U << 5U;
/// One number from all those along `axes`, with `keepdims`.
inline constexpr Traits reduction = 1U << 6U;
/// Other results each time.
inline constexpr Traits random = 1U << 7U;
/// No element of the result is below zero.
inline constexpr Traits not_negative = 1U << 8U;
/// Sums of products of input 0 with weights in input 1, f32 among the types.
inline constexpr Traits weighted = 1U << 9U;
/// Converts between real numbers and integers with a scale.
inline constexpr Traits scales_integers = 1U << 10U;
/// The result is rounded to integers of 8 bits or fewer with a scale.
inline constexpr Traits quantizes = 1U << 11U;
/// Reads the shape of its input and no element.
inline constexpr Traits reads_shape = 1U << 12U;
/// Input 1 holds indices along `axis` of input 0.
inline constexpr Traits indexes_axis = 1U << 13U;
}  // namespace trait

/// Nothing for a name that ai.onnx never had.
[[nodiscard]] Traits traits_of(std::string_view op_type);
/// Whether the node is of ai.onnx and its operator has one or more of these traits.
[[nodiscard]] bool has_trait(const Node& node, Traits any_of);
/// Whether the node is of ai.onnx and its operator is one of these: for sets that serve a single purpose.
[[nodiscard]] bool is_any_of(const Node& node, std::initializer_list<std::string_view> op_types);

}  // namespace graft::onnx

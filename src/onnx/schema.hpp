// The schemas of ONNX's operators (schema.inc and schema_versions.inc, generated), and traits that Graft adds to them
// (traits.inc).
#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "graft/operator/attribute.hpp"

namespace graft::onnx {

struct Node;

/// An attribute of an operator, as ONNX's schema defines it.
struct AttributeSchema {
  std::string_view name;
  /// The kind as a letter: f, i, s for a float, an integer, a string; F, I, S for lists of these; t for a tensor; - for
  /// another kind.
  char kind = '-';
  bool is_required = false;
};

/// An operator of ai.onnx. Inputs, outputs and attributes are those of opset 17 and all newer opsets together.
struct OperatorSchema {
  std::string_view name;
  std::int64_t since = 0;    ///< The opset in which the operator first appears.
  std::int64_t removed = 0;  ///< The opset from which ONNX deprecates the operator; 0 if it is not deprecated.
  std::size_t fewest_inputs = 0;
  std::size_t most_inputs = 0;
  std::size_t most_outputs = 0;
  /// The attributes as a list such as "axis:i=0 mode:s to:i!", with the letters of AttributeSchema; ! marks a required
  /// attribute.
  std::string_view attributes;

  [[nodiscard]] std::vector<std::string> attribute_names() const;
  [[nodiscard]] bool has_attribute(std::string_view attribute) const;
  /// Returns the letter of AttributeSchema::kind for an attribute; '-' if the operator does not have it.
  [[nodiscard]] char attribute_kind(std::string_view attribute) const;
  /// Returns the type of an attribute; nothing if the operator does not have it, or if AttributeValue cannot represent
  /// its kind.
  [[nodiscard]] std::optional<AttributeType> attribute_type(std::string_view attribute) const;
  /// Returns the default of an attribute in the newest opset, or nothing.
  [[nodiscard]] std::optional<AttributeValue> attribute_default(std::string_view attribute) const;
};

/// Returns the schema of an operator; null for a name that ai.onnx never had.
[[nodiscard]] const OperatorSchema* find_schema(std::string_view op_type);
/// Returns the schema of an operator, or null if the operator does not exist in this opset.
[[nodiscard]] const OperatorSchema* find_schema(std::string_view op_type, std::int64_t opset);
/// An operator of ai.onnx as one opset defines it.
struct SchemaVersion {
  std::string_view name;
  std::int64_t since = 0;  ///< The opset from which this version is valid.
  std::size_t fewest_inputs = 0;
  std::size_t most_inputs = 0;
  std::size_t most_outputs = 0;
  std::string_view attribute_text;  ///< The attributes in the form of OperatorSchema::attributes.

  [[nodiscard]] std::vector<AttributeSchema> attributes() const;
};

/// Returns the version of an operator in an opset >= 17, or nothing if that opset does not have the operator.
[[nodiscard]] std::optional<SchemaVersion> find_schema_version(std::string_view op_type, std::int64_t opset);

/// Returns what makes a node of ai.onnx invalid in an opset >= 17, and how to correct it: its operator, the number of
/// its inputs or outputs, or an attribute. Returns nothing if the schema allows the node. Types and shapes are not
/// checked.
[[nodiscard]] std::optional<std::string> schema_fault(const Node& node, std::int64_t opset);

/// Returns all operators, sorted by name, including those that ONNX deprecates.
[[nodiscard]] std::vector<const OperatorSchema*> all_schemas();

/// A set of properties of an operator, joined by |. A property is true for every node of the operator, whatever the
/// attributes of the node are.
using Traits = std::uint32_t;
namespace trait {
/// The result contains all elements of input 0 in the same order in memory: only the shape differs.
inline constexpr Traits view = 1U << 0U;
/// The result contains every element of input 0 once, in another order.
inline constexpr Traits permutation = 1U << 1U;
/// Each element of the result is an element of a data input. Which element it is does not depend on the elements
/// themselves. The data inputs are all inputs of Concat, and input 0 of other operators.
inline constexpr Traits selection = 1U << 2U;
/// The result contains every element of input 0 once, in any shape and order.
inline constexpr Traits rearranges = view | permutation;
/// The operator copies elements and computes none.
inline constexpr Traits moves_data = rearranges | selection;
/// The operator reads a single tensor, and each element of the result depends only on the element at the same position.
/// Other inputs are scalars, or determine a type.
inline constexpr Traits elementwise = 1U << 3U;
/// The operator reads several tensors that broadcast to each other, and each element of the result depends only on the
/// elements at its position.
inline constexpr Traits broadcasting = 1U << 4U;
/// The order of the inputs does not matter.
inline constexpr Traits commutative = 1U << 5U;
/// The operator reduces all elements along `axes` to one, and has the attribute `keepdims`.
inline constexpr Traits reduction = 1U << 6U;
/// The operator computes different results each time.
inline constexpr Traits random = 1U << 7U;
/// No element of the result is below zero.
inline constexpr Traits not_negative = 1U << 8U;
/// The operator sums products of input 0 with weights in input 1, and supports f32.
inline constexpr Traits weighted = 1U << 9U;
/// The operator converts between real numbers and integers with a scale.
inline constexpr Traits scales_integers = 1U << 10U;
/// The result is rounded to integers of 8 bits or fewer with a scale.
inline constexpr Traits quantizes = 1U << 11U;
/// The operator reads the shape of its input and no element.
inline constexpr Traits reads_shape = 1U << 12U;
/// Input 1 contains indices along `axis` of input 0.
inline constexpr Traits indexes_axis = 1U << 13U;
/// The operator compares two tensors; the result is boolean.
inline constexpr Traits compares = 1U << 15U;
/// The size of the result depends on the elements of the inputs.
inline constexpr Traits sized_by_data = 1U << 16U;
/// The operator processes a sequence of vectors with a state; `layout` states whether time or the batch comes first.
inline constexpr Traits recurrent = 1U << 14U;
}  // namespace trait

/// Returns the traits of an operator; an empty set for a name that ai.onnx never had.
[[nodiscard]] Traits traits_of(std::string_view op_type);
/// Returns whether the node is of ai.onnx and its operator has one or more of these traits.
[[nodiscard]] bool has_trait(const Node& node, Traits any_of);
/// Returns whether the node is of ai.onnx and its operator is one of these. Meant for sets that serve a single purpose.
[[nodiscard]] bool is_any_of(const Node& node, std::initializer_list<std::string_view> op_types);

}  // namespace graft::onnx

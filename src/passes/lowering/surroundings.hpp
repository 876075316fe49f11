// Forms of nodes that TensorRT refuses because of the nodes around them: sizes that are computed from data, bodies
// inside of bodies, and u8. src/inspect reports these forms, and the lowerings replace them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

#include "onnx/model.hpp"

namespace graft::passes {

enum class Step : std::uint8_t { into_inputs, stop, found };

struct Search {
  const onnx::Value* found = nullptr;
  /// Whether the search ended without a result because it had visited search_limit values. In that case a matching
  /// value may exist although `found` is null.
  bool reached_limit = false;
};

/// The maximum number of values that search_back visits.
inline constexpr std::size_t search_limit = 2000;

/// Calls `visit` for `start` and then for the values from which `start` is computed. `visit` returns whether to
/// continue with the inputs of the node that computes the value, to stop at this value, or to end the search with this
/// value as the result. Visits no more than `search_limit` values.
[[nodiscard]] Search search_back(const onnx::Value* start, const std::function<Step(const onnx::Value&)>& visit);

/// Returns whether a size of a tensor is not known before the network runs. Returns false for null.
[[nodiscard]] bool has_dynamic_sizes(const onnx::Value* value);
/// Returns whether a node is a Shape or a Size.
[[nodiscard]] bool reads_dimensions(const onnx::Node& node);
/// Returns whether TensorRT's parser evaluates the operator of a node itself when its result is used as a size. The
/// parser treats the results of other operators (Conv, TopK, CumSum ...) as run-time data.
[[nodiscard]] bool is_folded_into_sizes(const onnx::Node& node);

/// The time at which TensorRT knows the condition of an If.
enum class Condition : std::uint8_t {
  constant,   ///< Known when the parser reads the node; TensorRT keeps only one branch.
  undecided,  ///< Known at build time if the ranges of the inputs' sizes determine it, otherwise never.
  computed,   ///< Known when the engine runs.
};

/// Returns when TensorRT knows the condition of an If. TensorRT's parser evaluates conditions that are computed from
/// integer and boolean constants and from dimensions by most elementwise and reshaping operators. Conditions that
/// involve floating-point numbers, even constants, are evaluated when the engine runs. Returns `computed` for nodes
/// other than If.
[[nodiscard]] Condition find_condition(const onnx::Node& node);
[[nodiscard]] bool has_constant_condition(const onnx::Node& node);

/// Returns the node that has `body` as an attribute, or null for the main graph.
[[nodiscard]] const onnx::Node* find_owner(const onnx::Graph& body);
/// Returns the Loop or Scan whose body has the value as one of its inputs, or null if no body has it.
[[nodiscard]] const onnx::Node* find_loop(const onnx::Value& value);

/// Returns the indices of the inputs whose values determine the sizes of a node's outputs; empty for most operators.
[[nodiscard]] std::vector<std::size_t> size_inputs(const onnx::Node& node);
/// Searches the values from which `size` is computed for a value that TensorRT does not accept in the computation of a
/// size. Such values are inputs of the body of a Loop or Scan, inputs of the network that are neither i32 nor i64, and
/// results of an If whose condition is not constant. `found` is null if no such value exists.
[[nodiscard]] Search find_data_of_size(const onnx::Value& size);
/// Returns whether a size of the node's outputs is computed from an input of the network that is neither i32 nor i64,
/// or from a result of an If.
[[nodiscard]] bool has_size_from_data(const onnx::Node& node);

/// Returns the innermost If around `node` whose condition is not constant, if TensorRT refuses the nesting: `node` is
/// also an If without a constant condition, and computes tensors with dynamic sizes. Returns null otherwise, and if a
/// Loop or Scan is around the node.
[[nodiscard]] const onnx::Node* find_if_around(const onnx::Node& node);
/// Returns the If, Loop or Scan from whose results the input of a cubic Resize with dynamic height or width is
/// computed, or null. TensorRT does not build such a Resize.
[[nodiscard]] const onnx::Node* find_body_before_resize(const onnx::Node& resize);
[[nodiscard]] bool follows_body(const onnx::Node& resize);
/// Returns the cubic Resize nodes that depend on results of `node` and for which find_body_before_resize returns a
/// node.
[[nodiscard]] std::vector<const onnx::Node*> find_resizes_after(const onnx::Node& node);
/// Returns whether TensorRT does not build an If, although it supports all nodes in its branches: because of nested Ifs
/// (find_if_around) or because of a cubic Resize after it (find_resizes_after).
[[nodiscard]] bool is_refused_if(const onnx::Node& node);

/// Returns whether TensorRT represents a u8 value as i32. Its parser imports u8 constants as i32. The results of nodes
/// other than Cast that only read such values are then i32 too.
[[nodiscard]] bool is_imported_as_i32(const onnx::Value& value);

}  // namespace graft::passes

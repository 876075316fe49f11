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
  /// Whether the search ended at its limit, so that `found` may be null although a value fits.
  bool reached_limit = false;
};

/// The most values that search_back visits.
inline constexpr std::size_t search_limit = 2000;

/// Visits the values that `start` is computed from, `start` first, until `visit` finds one or `search_limit` values
/// were visited.
[[nodiscard]] Search search_back(const onnx::Value* start, const std::function<Step(const onnx::Value&)>& visit);

/// Returns whether a size of a tensor is not known before the network runs; false for null.
[[nodiscard]] bool has_dynamic_sizes(const onnx::Value* value);
/// Returns whether a node is a Shape or a Size.
[[nodiscard]] bool reads_dimensions(const onnx::Node& node);
/// Returns whether TensorRT's parser works out the results of a node itself where they lead to a size. It takes the
/// results of others (Conv, TopK, CumSum ...) as they are.
[[nodiscard]] bool is_folded_into_sizes(const onnx::Node& node);

/// When the condition of an If is known.
enum class Condition : std::uint8_t {
  constant,   ///< When the parser reads the node: TensorRT keeps one branch.
  undecided,  ///< If TensorRT can decide it from the symbols and ranges of the inputs' sizes; otherwise never.
  computed,   ///< When the engine runs.
};

/// Returns when TensorRT knows a condition, which it works out from integers and booleans: constants, dimensions, and
/// what most elementwise and reshaping operators make of these. It computes floating-point numbers when the engine
/// runs, constants included. Returns `computed` for nodes other than If.
[[nodiscard]] Condition find_condition(const onnx::Node& node);
[[nodiscard]] bool has_constant_condition(const onnx::Node& node);

/// Returns the node whose attribute holds a body, or null.
[[nodiscard]] const onnx::Node* find_owner(const onnx::Graph& body);
/// Returns the Loop or Scan whose body receives a value in each step, or null.
[[nodiscard]] const onnx::Node* find_loop(const onnx::Value& value);

/// Returns the indices of the inputs that decide the size of a node's output.
[[nodiscard]] std::vector<std::size_t> size_inputs(const onnx::Node& node);
/// Searches what TensorRT cannot compute a size from: a value that a Loop or Scan hands to its body in each step, an
/// input of the network that is not of i32 or i64, or a result of If.
[[nodiscard]] Search find_data_of_size(const onnx::Value& size);
/// Returns whether a size of the node's output is computed from an input of the network that is not of i32 or i64, or
/// from a result of If.
[[nodiscard]] bool has_size_from_data(const onnx::Node& node);

/// Returns the outermost If around an If that computes tensors with dynamic sizes, where no Loop or Scan is around it
/// and neither condition is constant; otherwise null. TensorRT does not build such an If.
[[nodiscard]] const onnx::Node* find_if_around(const onnx::Node& node);
/// Returns the If, Loop or Scan before a cubic Resize whose height or width is dynamic, or null. TensorRT does not
/// build such a Resize.
[[nodiscard]] const onnx::Node* find_body_before_resize(const onnx::Node& resize);
[[nodiscard]] bool follows_body(const onnx::Node& resize);
/// Returns the cubic Resize nodes after an If for which find_body_before_resize returns a node.
[[nodiscard]] std::vector<const onnx::Node*> find_resizes_after(const onnx::Node& node);
/// Returns whether TensorRT does not build an If, or a cubic Resize after it, although it has the branches.
[[nodiscard]] bool is_refused_if(const onnx::Node& node);

/// Returns whether TensorRT holds a value of type u8 in i32: its parser imports constants of u8 as i32, and what
/// nodes other than Cast compute from those is i32 too.
[[nodiscard]] bool is_imported_as_i32(const onnx::Value& value);

}  // namespace graft::passes

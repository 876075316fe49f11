// Infers the types and shapes of a model in which some nodes have faults.
#pragma once

#include <cstddef>
#include <functional>
#include <map>
#include <string>
#include <string_view>

#include "graft/error.hpp"
#include "onnx/model.hpp"

namespace graft::onnx {

/// The metadata key under which a node's fault is stored as a message. A node with a fault does not count as an
/// operator of Graft, and inference skips it, so that the other nodes can be examined.
inline constexpr std::string_view fault_note = "graft.fault";

/// Returns an error about bad input, with the next step appended on its own line unless the message already has one.
/// Other errors are returned unchanged.
[[nodiscard]] Error with_next_step(const Error& error, std::string_view step);

/// Called for a node that contradicts itself or its inputs.
using OnFault = std::function<void(Node&, const Error&)>;

/// Runs infer_shapes. Calls `on_fault` for each node with a fault, leaves the outputs of the node unchanged, and
/// continues. Returns the number of values in the main graph whose type or rank is unknown.
std::size_t infer_around_faults(Model& model, const OnFault& on_fault);

/// Runs inference from the input shapes `input_shapes`, and calls `on_fault` for each node with a fault. The shapes
/// that the file declares for outputs of nodes are removed first and restored where nothing was inferred, for example
/// after an unknown operator; then inference runs again. Returns the number of values in the main graph whose type or
/// rank is unknown.
std::size_t infer_around_faults(Model& model, const std::map<std::string, Shape, std::less<>>& input_shapes,
                                const OnFault& on_fault);

}  // namespace graft::onnx

// Finds the nodes that compute in f64, which TensorRT computes in f32.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "onnx/model.hpp"

namespace graft::inspect {

/// The clause of messages for f64 nodes that TensorRT computes in f32.
inline constexpr std::string_view f64_in_f32 = "in f32, to about 7 digits";

/// Returns one sentence for the user, or nothing if nothing in the model computes in f64. The sentence names the nodes
/// that compute in f64, also inside functions, the f64 constants with numbers that f32 cannot represent, and the f64
/// inputs and outputs. Nodes that only move elements, and casts between f64 and other floating-point types, are left
/// out, because their results are the same in f32 if all other nodes are in f32. The types of the model must have been
/// inferred.
[[nodiscard]] std::optional<std::string> f64_warning(const onnx::Model& model);

}  // namespace graft::inspect

// Finds the nodes that compute in f64, which TensorRT computes in f32.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "onnx/model.hpp"

namespace graft::inspect {

/// The clause of messages about f64 that is computed in another type.
inline constexpr std::string_view f64_in_f32 = "in f32, to about 7 digits";

/// Returns one sentence that names the nodes that compute in f64, also those in functions, the f64 constants with
/// numbers that f32 does not have, and the f64 inputs and outputs of the model, or nothing if there are none. The types
/// of the model have to be inferred. Nodes that only move elements, and casts between f64 and other floating-point
/// types, are left out: their results are the same in f32 if all other nodes are in f32.
[[nodiscard]] std::optional<std::string> f64_warning(const onnx::Model& model);

}  // namespace graft::inspect

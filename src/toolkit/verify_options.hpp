// Converts the options of comparisons from the public interface to the options of the libraries.
#pragma once

#include "graft/toolkit/precision.hpp"
#include "graft/toolkit/verify.hpp"
#include "toolkit/compare_models.hpp"

namespace graft::toolkit {

/// Returns the options with data and shapes in the names and the layout of the reference. Throws Error for values out
/// of range, for options that exclude each other, and for data and shapes that fit neither model.
[[nodiscard]] CompareOptions compare_options(const VerifyOptions& given, const graft::onnx::Model& reference,
                                             const graft::onnx::Model& candidate);

/// Does the same as the public `verify`, in the engine that `around` returns for the engine of the options.
[[nodiscard]] VerifyResult verify(const Model& reference, const Model& candidate, const VerifyOptions& options,
                                  const EngineAround& around);

}  // namespace graft::toolkit

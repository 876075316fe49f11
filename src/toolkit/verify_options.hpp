// Between what applications say of a comparison and what the libraries below take.
#pragma once

#include "graft/toolkit/precision.hpp"
#include "graft/toolkit/verify.hpp"
#include "toolkit/compare_models.hpp"

namespace graft::toolkit {

[[nodiscard]] Verdict verdict_of(graft::verify::Verdict verdict);

/// Data and shapes come back under the names of the reference and in its layout.
[[nodiscard]] CompareOptions compare_options(const VerifyOptions& given, const graft::onnx::Model& reference,
                                             const graft::onnx::Model& candidate);

/// `verify` in an engine around that of the options.
[[nodiscard]] VerifyResult verify(const Model& reference, const Model& candidate, const VerifyOptions& options,
                                  const EngineAround& around);

}  // namespace graft::toolkit

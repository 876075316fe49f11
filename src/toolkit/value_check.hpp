// The last step of `convert` and `quantize`: checks whether the result computes the same values as the given model.
#pragma once

#include "graft/report/value_check.hpp"
#include "graft/toolkit/cpu_engine.hpp"
#include "graft/toolkit/progress.hpp"
#include "onnx/model.hpp"
#include "verify/compare/verify_models.hpp"

namespace graft::toolkit {

using report::ValueCheck;

/// Compares the outputs of both models, within the budget of a file (runtime/budget.hpp) where `is_limited`. Where a
/// model cannot be run, ValueCheck::failure has the reason. Throws Cancelled, and Error (internal).
[[nodiscard]] ValueCheck check_values(const graft::onnx::Model& reference, const graft::onnx::Model& candidate,
                                      graft::verify::VerifyOptions options, CpuEngine choice, const Watch& watch,
                                      bool is_limited = false);

}  // namespace graft::toolkit

// The last step of `convert` and `quantize`: checks whether the result computes the same values as the given model.
#pragma once

#include "graft/report/value_check.hpp"
#include "graft/toolkit/cpu_engine.hpp"
#include "graft/toolkit/progress.hpp"
#include "onnx/model.hpp"
#include "verify/compare/verify_models.hpp"

namespace graft::toolkit {

using report::ValueCheck;

/// Compares the outputs of both models. If a model cannot be run, ValueCheck::failure has the reason. If `is_limited`
/// is true, the memory and time of the runs are limited as by make_budget_engine (runtime/budget.hpp). Throws
/// Cancelled, and Error (internal).
[[nodiscard]] ValueCheck check_values(const graft::onnx::Model& reference, const graft::onnx::Model& candidate,
                                      graft::verify::VerifyOptions options, CpuEngine choice, const Watch& watch,
                                      bool is_limited = false);

}  // namespace graft::toolkit

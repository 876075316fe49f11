// The last step of `convert` and `quantize`: whether the model that is written computes what the given one computes.
#pragma once

#include <optional>
#include <string>

#include "graft/toolkit/cpu_engine.hpp"
#include "graft/toolkit/progress.hpp"
#include "onnx/model.hpp"
#include "verify/compare/verify_models.hpp"

namespace graft::toolkit {

/// The comparison that `graft verify` makes of the two models with the same options: one function judges in all three
/// commands.
struct ValueCheck {
  std::optional<verify::VerifyReport> report;  ///< Nothing where the models were not compared.
  std::string failure;                         ///< Why they could not be compared, where that was tried.
  std::optional<double> limit_db;  ///< The limit of the options, which takes the place of the usual tolerance.

  /// Whether `graft verify` ends with exit code 0, or was not asked.
  [[nodiscard]] bool is_good() const {
    return failure.empty() && (!report || report->verdict() == verify::Verdict::same);
  }
};

/// Runs both models in the engine for values, within the budget of a file (runtime/budget.hpp) where `is_limited`.
/// `common` has the data, shapes, seeds and limit of the options; what cannot be run is ValueCheck::failure. Throws
/// Cancelled, and Error where Graft itself is at fault.
[[nodiscard]] ValueCheck check_values(const graft::onnx::Model& reference, const graft::onnx::Model& candidate,
                                      const graft::verify::VerifyOptions& common, CpuEngine engine, const Watch& watch,
                                      bool is_limited = false);

}  // namespace graft::toolkit

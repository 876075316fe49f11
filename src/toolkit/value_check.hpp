// The last step of `convert` and `quantize`: checks whether the result computes the same values as the given model.
#pragma once

#include <optional>
#include <string>

#include "graft/toolkit/cpu_engine.hpp"
#include "graft/toolkit/progress.hpp"
#include "onnx/model.hpp"
#include "verify/compare/verify_models.hpp"

namespace graft::toolkit {

/// The comparison of `graft verify` on the two models with the same options. The same function judges in all three
/// commands, so that their verdicts agree.
struct ValueCheck {
  std::optional<report::VerifyReport> report;  ///< The comparison; nothing where the models were not compared.
  std::string failure;                         ///< Why the comparison failed; empty where it did not or was not tried.
  /// Whether the comparison failed because the budget of a file refused a run. The limits of `graft verify` allow it.
  bool is_over_budget = false;
  std::optional<double> limit_db;  ///< The limit of the options in dB, in place of the usual tolerance.

  /// Whether `graft verify` can compare the same models: it needs the same runs, and has larger limits.
  [[nodiscard]] bool can_be_repeated() const { return report || is_over_budget; }
  /// Whether the verdict is `same`, or the models were not compared and the comparison did not fail.
  [[nodiscard]] bool is_good() const {
    return failure.empty() && (!report || report->verdict() == report::Verdict::same);
  }
};

/// Compares the outputs of both models, within the budget of a file (runtime/budget.hpp) where `is_limited`. `common`
/// has the data, shapes, seeds, threads and limit of the options. Where a model cannot be run, ValueCheck::failure has
/// the reason. Throws Cancelled, and Error (internal).
[[nodiscard]] ValueCheck check_values(const graft::onnx::Model& reference, const graft::onnx::Model& candidate,
                                      const graft::verify::VerifyOptions& common, CpuEngine engine, const Watch& watch,
                                      bool is_limited = false);

}  // namespace graft::toolkit

// The check at the end of `convert` and `quantize`: whether the result computes the same values as the given model.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "graft/report/field.hpp"
#include "graft/report/verify.hpp"

namespace graft::report {

/// The comparison of two models that `convert` and `quantize` run. `graft verify` with the same options calls the same
/// function, so that all verdicts agree.
struct ValueCheck {
  std::optional<VerifyReport> report = {};  ///< The comparison; empty if the models were not compared.
  std::string failure = {};                 ///< Why the comparison failed; empty if it succeeded or was not tried.
  /// Whether the comparison failed because the budget for a model file did not allow a run. `graft verify` has larger
  /// limits.
  bool is_over_budget = false;
  /// The limit on the signal-to-noise ratio in dB that the options set instead of the usual tolerance.
  std::optional<double> limit_db = {};
  std::string command = {};  ///< The command that repeats the comparison; empty if no command does.

  /// Returns whether a comparison was tried.
  [[nodiscard]] bool is_tried() const { return report || !failure.empty(); }
  /// Returns whether the user can run the comparison with `graft verify`: either it ran here, or it failed only because
  /// of limits that are larger in `graft verify`.
  [[nodiscard]] bool can_be_repeated() const { return report || is_over_budget; }
  /// Returns whether the verdict is `same`, or the models were not compared and no comparison failed.
  [[nodiscard]] bool is_good() const { return failure.empty() && (!report || report->verdict() == Verdict::same); }
  [[nodiscard]] std::string verdict_text() const { return report ? report->verdict_text() : "not compared"; }
  [[nodiscard]] std::string ran_in() const { return report ? report->ran_in : ""; }
  [[nodiscard]] std::vector<std::string> left_out() const {
    return report ? report->left_out : std::vector<std::string>();
  }
  [[nodiscard]] std::vector<OwnDefinition> own_definitions() const {
    return report ? report->own_definitions : std::vector<OwnDefinition>();
  }
  [[nodiscard]] std::size_t runs() const { return report ? report->runs : 0; }

  static constexpr auto fields() {
    return std::tuple{
        field("verdict", &ValueCheck::verdict_text, "'the same', 'not the same', 'not compared' or 'disputed'."),
        field("failure", &ValueCheck::failure, "Why the models could not be compared; empty if they were."),
        field("ran_in", &ValueCheck::ran_in, "The engine that ran the models; empty if they were not compared."),
        field("left_out", &ValueCheck::left_out,
              "Why a model did not run in the first choice of engines, and known wrong results of the engine that ran "
              "it; mostly "
              "empty."),
        field("runs", &ValueCheck::runs, "The number of runs of both models."),
        field("own_definitions", &ValueCheck::own_definitions,
              "The operators of loaded libraries that compute nodes of the given model. Both models compute these "
              "nodes with the library's definition, so the verdict supposes that the definition is right."),
        field("command", &ValueCheck::command,
              "The command that repeats the comparison; empty if no command does, for example for data in memory."),
    };
  }
};

}  // namespace graft::report

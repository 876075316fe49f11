// The report of `graft auto`: its steps with the reports of the functions that they called, and the checks of the
// engine.
#pragma once

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "graft/report/build.hpp"
#include "graft/report/convert.hpp"
#include "graft/report/field.hpp"
#include "graft/report/inspect.hpp"
#include "graft/report/quantize.hpp"
#include "graft/toolkit/verify.hpp"

namespace graft::report {

/// The outcome of a step.
enum class StepState : std::uint8_t {
  done,         ///< The step ran and its result is good.
  not_needed,   ///< The step did not run, because the result does not depend on it.
  negative,     ///< The step ran and its result is not good: no later step ran.
  not_reached,  ///< The step did not run, or still runs.
};

/// Returns "done", "not needed", "negative" or "not reached".
[[nodiscard]] inline std::string_view to_string(StepState state) {
  switch (state) {
    case StepState::done: return "done";
    case StepState::not_needed: return "not needed";
    case StepState::negative: return "negative";
    case StepState::not_reached: return "not reached";
  }
  return "";
}

/// A step of `graft auto`. `command` is the command line that does the same as this step alone.
struct AutoStep {
  std::string name = {};
  StepState state = StepState::not_reached;
  std::string command = {};
  std::string why = {};
  double seconds = 0;

  static constexpr auto fields() {
    return std::tuple{
        field("name", &AutoStep::name, "'convert', 'verify', 'quantize' or 'build', the name of a command."),
        field("state", &AutoStep::state,
              "'done'; 'not needed'; 'negative', where no later step runs; or 'not reached'."),
        field("command", &AutoStep::command,
              "The command that does the same as the step; empty for a step that is not needed."),
        field("why", &AutoStep::why,
              "Why the step was not needed, or the error with which it ended; empty for other steps."),
        composed<std::string>("found", "The result of the step in words; empty where the step did not run."),
        field("seconds", &AutoStep::seconds, "The time of the step in seconds.")};
  }
};

/// A check of the engine that was built.
struct EngineCheck {
  std::string name = {};
  std::optional<bool> passed = {};
  std::string found = {};

  static constexpr auto fields() {
    return std::tuple{
        field("name", &EngineCheck::name,
              "'targets': the plugins have code for all targets; 'values': TensorRT is not known to compute a node "
              "wrongly; 'types': the kernels have the precision of the quantized model."),
        field("passed", &EngineCheck::passed, "Whether the check passed; null if it was not possible."),
        field("found", &EngineCheck::found, "What was found, or why the check was not possible.")};
  }
};

/// The result of `graft auto`.
struct AutoReport {
  std::filesystem::path model = {};
  std::filesystem::path engine = {};
  std::filesystem::path folder = {};
  std::vector<std::string> files = {};
  std::optional<Precision> precision = {};
  std::vector<std::string> targets = {};
  std::string why_targets = {};
  std::vector<AutoStep> steps = {};
  std::vector<EngineCheck> checks = {};
  std::vector<std::string> data_notes = {};
  std::optional<ConvertReport> convert = {};
  std::optional<toolkit::VerifyResult> verify = {};
  std::optional<QuantizeReport> quantize = {};
  std::optional<BuildReport> build = {};

  /// Returns the step with a negative result, or null if no step has one.
  [[nodiscard]] const AutoStep* negative_step() const {
    const auto found = std::ranges::find(steps, StepState::negative, &AutoStep::state);
    return found == steps.end() ? nullptr : &*found;
  }
  /// Returns whether the engine exists and no check failed. A check that was not possible does not count.
  [[nodiscard]] bool succeeded() const {
    return build && std::ranges::none_of(checks, [](const EngineCheck& check) { return !check.passed.value_or(true); });
  }

  static constexpr Schema schema{"graft.auto", 1, "The steps from a network to an engine, and their reports.", true};
  static constexpr auto fields() {
    return std::tuple{
        field("succeeded", &AutoReport::succeeded,
              "Whether the engine exists and every check passed; otherwise `graft auto` has exit code 1."),
        field(nullptr, "model", &AutoReport::model, "The file of the network."),
        field("engine", &AutoReport::engine, "The file of the engine; it exists only if `build` is not null."),
        field("folder", &AutoReport::folder, "The folder of the other files."),
        field("files", &AutoReport::files, "The names of the models in the folder."),
        field(nullptr, "precision", &AutoReport::precision,
              "The precision to which the network was quantized: 'f16', 'bf16', 'int8' or 'f8'; null without one."),
        field("targets", &AutoReport::targets,
              "The GPUs for which the engine is built; empty for the default of TensorRT."),
        field("why_targets", &AutoReport::why_targets, "Why the engine is built for these GPUs."),
        field("steps", &AutoReport::steps, "The steps in their order."),
        field("data_notes", &AutoReport::data_notes,
              "How the arrays of the data were converted, and arrays that were not used; mostly empty."),
        field("checks", &AutoReport::checks, "The checks of the engine; empty if there is none."),
        composed<std::vector<NextCommand>>("next", "The commands to run next."),
        field("convert", &AutoReport::convert, "The report of `graft convert`; null if it did not end."),
        field("verify", &AutoReport::verify, "The report of `graft verify`; null if it did not run to its end."),
        field("quantize", &AutoReport::quantize, "The report of `graft quantize`; null if it did not run to its end."),
        field("build", &AutoReport::build, "The report of `graft build`; null if there is no engine.")};
  }
};

}  // namespace graft::report

// `graft inspect --probe`: its options, and what it says of TensorRT's answer.
#pragma once

#include <string>
#include <vector>

#include "cli/model_arguments.hpp"
#include "cli/program.hpp"
#include "inspect/probe_verdicts.hpp"

namespace graft::cli {

struct ProbeOptions {
  std::string level = "rule";
  inspect::TrialOptions trials;
  std::vector<std::string> shapes;  ///< NAME=MIN..OPT..MAX
  std::string reduce;               ///< A file for the smallest part that fails.
};

/// Returns what shows trials: the progress bar, and with -v a line for each that has ended. SIGINT and SIGTERM stop
/// them.
[[nodiscard]] inspect::TrialCallbacks trial_callbacks(const Console& console, Progress& progress);

/// --probe, --plugin-lib and what else is about it.
void add_truth_options(CLI::App& command, ProbeOptions& options);
/// Throws Error for options that make no sense without --probe, and for files that are not there.
void check_truth_options(const ProbeOptions& options);

struct ProbeAnswer {
  Json facts = {{"truth", "rule"},    {"tensorrt", nullptr}, {"trials", nullptr},
                {"reduced", nullptr}, {"unanswered", 0},     {"pieces", 0}};
  std::vector<std::string> lines;  ///< To say below the verdicts.
};

/// Asks, changes the verdicts and writes --reduce. `nodes` are those of judge_nodes for the same model.
[[nodiscard]] ProbeAnswer ask_tensorrt(const Console& console, const Model& model, const ProbeOptions& options,
                                       std::vector<inspect::NodeVerdict>& nodes);

}  // namespace graft::cli

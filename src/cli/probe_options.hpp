// The option --probe and the other options about the installed TensorRT.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "cli/program.hpp"
#include "toolkit/inspect.hpp"

namespace graft::cli {

struct ProbeArguments {
  std::string level = "auto";
  inspect::TrialOptions trials;
  std::vector<std::string> shapes;  ///< NAME=MIN..OPT..MAX
  std::string reduce;               ///< The file for the smallest part that fails.
};

/// Adds --probe, --plugin-lib, --shapes and the other options about the installed TensorRT, except --reduce.
/// `probe_help` is the description of --probe.
void add_probe_options(Command& command, ProbeArguments& arguments, const std::string& probe_help);
/// Throws Error for options that have no effect if only the rules judge, and for plugin libraries that do not exist.
/// `rules_option` is the option with which the user chose the rules, such as "--for", or empty; --probe is in the
/// arguments.
void check_probe_options(const ProbeArguments& arguments, std::string_view rules_option);

[[nodiscard]] inspect::ProbeOptions probe_options_of(const ProbeArguments& arguments);

/// Runs TensorRT on the model if the arguments request it, with a progress bar, and with -v prints each finished trial.
void probe(const Console& console, toolkit::Inspection& inspection, const ProbeArguments& arguments);

/// Returns a callback that with -v prints each finished trial.
[[nodiscard]] toolkit::TrialCallback trial_details(const Console& console, Progress& progress);

}  // namespace graft::cli

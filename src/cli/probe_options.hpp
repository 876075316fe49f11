// The option --probe and the other options about the installed TensorRT.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "cli/program.hpp"
#include "graft/toolkit/inspect.hpp"

namespace graft::cli {

struct ProbeArguments {
  std::string level = "auto";
  std::vector<std::string> libraries;  ///< --plugin-lib
  toolkit::InspectOptions options;     ///< The options that other arguments set.
  std::string reduce;                  ///< The file for the smallest part that fails.
};

/// Adds --probe, --plugin-lib, --shapes and the other options about the installed TensorRT, except --reduce.
/// `probe_help` is the description of --probe.
void add_probe_options(Command& command, ProbeArguments& arguments, const std::string& probe_help);
/// Throws Error for options that have no effect if only the rules judge, and for plugin libraries that do not exist.
/// `rules_option` is the option with which the user chose the rules, such as "--for", or empty if it was --probe or
/// none.
void check_probe_options(const ProbeArguments& arguments, std::string_view rules_option);

/// Returns the options of an inspection, without a watch.
[[nodiscard]] toolkit::InspectOptions inspect_options_of(const ProbeArguments& arguments);

/// Returns a callback that with -v prints each finished trial.
[[nodiscard]] toolkit::TrialCallback trial_details(const Console& console, Progress& progress);

}  // namespace graft::cli

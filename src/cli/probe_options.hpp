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
  std::vector<std::string> libraries;  ///< The values of --plugin-lib, which are paths of plugin libraries.
  toolkit::InspectOptions options;     ///< The other options that the command line sets.
  /// The value of --reduce: the file for the smallest part of the model that fails.
  std::string reduce;
};

/// Adds --probe, --plugin-lib, --shapes and the other options about the installed TensorRT, except --reduce.
/// `probe_help` is the description of --probe.
void add_probe_options(Command& command, ProbeArguments& arguments, const std::string& probe_help);
/// Throws Error for plugin libraries that do not exist, and for options about TensorRT if Graft's rules judge without
/// TensorRT, so that these options have no effect. `rules_option` is the option with which the user chose the rules,
/// such as "--for". It is empty if the user chose them with --probe or did not choose them.
void check_probe_options(const ProbeArguments& arguments, std::string_view rules_option);

/// Returns the options of an inspection that the command line sets. The caller has to set `watch`.
[[nodiscard]] toolkit::InspectOptions inspect_options_of(const ProbeArguments& arguments);

/// Returns a callback that, with -v, prints each finished parse or build of TensorRT. It removes the bar of `progress`
/// first.
[[nodiscard]] toolkit::TrialCallback trial_details(const Console& console, Progress& progress);

}  // namespace graft::cli

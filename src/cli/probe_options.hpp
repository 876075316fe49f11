// `graft inspect --probe`: its options, and asking.
#pragma once

#include <string>
#include <vector>

#include "cli/program.hpp"
#include "toolkit/inspect.hpp"

namespace graft::cli {

struct ProbeArguments {
  std::string level = "auto";
  inspect::TrialOptions trials;
  std::vector<std::string> shapes;  ///< NAME=MIN..OPT..MAX
  std::string reduce;               ///< A file for the smallest part that fails.
};

/// --probe, --plugin-lib and what else is about it.
void add_probe_options(Command& command, ProbeArguments& arguments);
/// Throws Error for options that make no sense where TensorRT is not asked, and for files that are not there.
/// `rules_option` is how the user chose the rules alone.
void check_probe_options(const ProbeArguments& arguments, const char* rules_option = "--probe none");

[[nodiscard]] inspect::ProbeOptions probe_options_of(const ProbeArguments& arguments);

/// Asks TensorRT where the arguments say so, with the progress bar, and with -v a line for each trial that has ended.
void probe(const Console& console, toolkit::Inspection& inspection, const ProbeArguments& arguments);

/// Tells with -v of a trial that has ended.
[[nodiscard]] toolkit::TrialCallback trial_details(const Console& console, Progress& progress);

}  // namespace graft::cli

// Adds the options about the installed TensorRT and runs its trials.
#include "cli/probe_options.hpp"

#include <fmt/format.h>

#include "cli/engine_command.hpp"
#include "graft/error.hpp"
#include "graft/toolkit/files.hpp"

namespace graft::cli {
namespace {

report::Judge judge_of(const std::string& word) {
  if (word == "auto") return report::Judge::automatic;
  if (word == "parser") return report::Judge::parser;
  return word == "none" ? report::Judge::rule : report::Judge::builder;
}

}  // namespace

void add_probe_options(Command& command, ProbeArguments& arguments, const std::string& probe_help) {
  command.add_option("--probe,--truth", arguments.level, probe_help)
      ->type_name("WHO")
      ->check(one_of({"auto", "none", "parser", "builder"}));
  command
      .add_option("--plugin-lib", arguments.libraries,
                  "plugin library for TensorRT to load; repeatable (default: Graft's own, if the model needs it)")
      ->type_name("FILE");
  command
      .add_option("--shapes", arguments.options.shape_texts,
                  "minimum, optimum and maximum shape of an input with dynamic dimensions, NAME=MIN..OPT..MAX, for the "
                  "builder; repeatable")
      ->type_name("RANGE");
  command.add_option("--target", arguments.options.targets, "GPUs to build for, as for `graft build`")
      ->type_name("LIST")
      ->delimiter(',');
  command
      .add_option("--tensorrt", arguments.options.tensorrt,
                  "TensorRT to use: rtx (TensorRT-RTX), full (TensorRT) or auto; exit code 3 if rtx or full is not "
                  "installed (default: auto)")
      ->type_name("WHICH")
      ->check(one_of({"auto", "rtx", "full"}));
  command.add_flag("--plugin-override", arguments.options.plugin_override,
                   "plugins take precedence over ONNX operators and functions with the same name");
  command
      .add_option(
          "--time-limit", arguments.options.budget.trial_seconds,
          "a parse, a build or the loading of a plugin library that takes longer is stopped as hanging (default: 300)")
      ->type_name("SECONDS")
      ->check(positive());
  command
      .add_option("--max-builds", arguments.options.budget.max_builds,
                  "maximum number of builds in total; nodes that are not judged by then are reported (default: 60)")
      ->type_name("N")
      ->check(positive());
  command
      .add_option(
          "--max-seconds", arguments.options.budget.max_seconds,
          "maximum time of all parses and builds; nodes that are not judged by then are reported (default: 120)")
      ->type_name("SECONDS")
      ->check(positive());
}

void check_probe_options(const ProbeArguments& arguments, std::string_view rules_option) {
  const auto refuse = [](std::string_view option, std::string_view chosen) {
    throw Error(fmt::format("{0} applies to the installed TensorRT, which does not run with {1}\nRemove {0} or {1}",
                            option, chosen));
  };
  const bool names_tensorrt = arguments.level == "parser" || arguments.level == "builder";
  if (names_tensorrt && !rules_option.empty()) refuse("--probe " + arguments.level, rules_option);
  toolkit::check_plugin_libraries(arguments.libraries);
  if (rules_option.empty() && arguments.level != "none") return;
  const std::string_view chosen = rules_option.empty() ? "--probe none" : rules_option;
  if (!arguments.reduce.empty()) refuse("--reduce", chosen);
  if (!arguments.libraries.empty()) refuse("--plugin-lib", chosen);
  if (arguments.options.plugin_override) refuse("--plugin-override", chosen);
  if (!arguments.options.shape_texts.empty()) refuse("--shapes", chosen);
}

toolkit::InspectOptions inspect_options_of(const ProbeArguments& arguments) {
  toolkit::InspectOptions options = arguments.options;
  options.judge = judge_of(arguments.level);
  options.plugin_libraries = {arguments.libraries.begin(), arguments.libraries.end()};
  options.reduce = arguments.reduce;
  return options;
}

toolkit::TrialCallback trial_details(const Console& console, Progress& progress) {
  return [&](const report::TrialProgress& trial) {
    progress.clear();
    console.detail(fmt::format("{} of {}: {}, {:.2f} s", trial.action, count_text(trial.nodes, "node"), trial.outcome,
                               trial.seconds));
  };
}

}  // namespace graft::cli

// graft plugins: lists the creators and fields that TensorRT's plugin registry reports for plugin libraries.
#include "graft/toolkit/plugins.hpp"

#include <memory>
#include <string>
#include <vector>

#include "cli/engine_command.hpp"
#include "cli/interrupts.hpp"
#include "cli/probe_options.hpp"
#include "cli/program.hpp"
#include "cli/watch.hpp"
#include "present/json/fields.hpp"
#include "present/text/plugins_text.hpp"

namespace graft::cli {
namespace {

struct PluginsArguments {
  std::vector<std::string> libraries;
  toolkit::PluginsOptions options;
};

toolkit::PluginsReport list_plugins(const Console& console, const PluginsArguments& arguments) {
  const DeferInterrupts defer;
  Progress progress(console);
  toolkit::PluginsOptions options = arguments.options;
  options.on_log = log_of(console, progress);
  options.on_trial = trial_details(console, progress);
  options.on_warning = [&](const std::string& warning) {
    progress.clear();
    warn_of(console, {warning});
  };
  options.watch = watch_of(progress);
  return toolkit::list_plugins(arguments.libraries, options);
}

Exit plugins(const Console& console, const PluginsArguments& arguments) {
  const toolkit::PluginsReport report = list_plugins(console, arguments);
  console.print(arguments.options.check ? present::checks_text(report, console.verbose)
                                        : present::plugins_text(report, arguments.libraries));
  console.result(present::json_of_report(report));
  return report.checks && report.checks->failed != 0 ? Exit::answer_is_no : Exit::done;
}

}  // namespace

void add_plugins(Program& program) {
  const auto arguments = std::make_shared<PluginsArguments>();
  Command* command = program.add_command(
      "plugins",
      "lists the creators and fields of TensorRT plugin libraries, as TensorRT's plugin registry reports them",
      "graft plugins build/lib/libgraft_plugins.so", [arguments](const Console& c) { return plugins(c, *arguments); });
  command->add_option("LIBRARY", arguments->libraries, "shared libraries with TensorRT plugins")->required();
  command->add_flag("--check", arguments->options.check,
                    "check whether each creator and its plugin meet TensorRT's contract, and whether an engine with it "
                    "builds; lists which checks were made and which were not; exit code 1 if one fails");
  command
      ->add_option("--tensorrt", arguments->options.tensorrt,
                   "TensorRT to use: rtx (TensorRT-RTX), full (TensorRT), lean (TensorRT's lean runtime) or auto "
                   "(default: auto)")
      ->type_name("WHICH")
      ->check(one_of({"auto", "rtx", "full", "lean"}));
  command
      ->add_option("--time-limit", arguments->options.time_limit,
                   "a library that takes longer is stopped as hanging (default: 120)")
      ->type_name("SECONDS")
      ->check(positive());
}

}  // namespace graft::cli

// graft plugins: lists the creators and fields that TensorRT's plugin registry reports for plugin libraries.
#include "toolkit/plugins.hpp"

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

void check_engines(const Console& console, const report::PluginsOptions& options, report::PluginsReport& report) {
  const DeferInterrupts defer;
  Progress progress(console);
  toolkit::check_engines(report, options, watch_of(progress), trial_details(console, progress));
}

Exit plugins(const Console& console, const report::PluginsOptions& options) {
  report::PluginsReport report = toolkit::list_plugins(
      options, [&](const std::vector<std::string>& question) { return ask_engine_driver(console, question); });
  if (options.check) {
    check_engines(console, options, report);
    console.print(present::checks_text(report, console.verbose));
  } else {
    console.print(present::plugins_text(report, options.libraries));
  }
  console.result(present::json_of_report(report));
  return report.checks && report.checks->failed != 0 ? Exit::answer_is_no : Exit::done;
}

}  // namespace

void add_plugins(Program& program) {
  const auto arguments = std::make_shared<report::PluginsOptions>();
  Command* command = program.add_command(
      "plugins",
      "lists the creators and fields of TensorRT plugin libraries, as TensorRT's plugin registry reports them",
      "graft plugins build/lib/libgraft_plugins.so", [arguments](const Console& c) { return plugins(c, *arguments); });
  command->add_option("LIBRARY", arguments->libraries, "shared libraries with TensorRT plugins")->required();
  command->add_flag("--check", arguments->check,
                    "check whether each creator and its plugin meet TensorRT's contract, and whether an engine with it "
                    "builds; lists which checks were made and which were not; exit code 1 if one fails");
  command->add_option("--tensorrt", arguments->tensorrt, "TensorRT to use: auto, rtx, full or lean (default: auto)")
      ->type_name("WHICH")
      ->check(one_of({"auto", "rtx", "full", "lean"}));
  command
      ->add_option("--time-limit", arguments->time_limit,
                   "a library that takes longer is stopped as hanging (default: 120)")
      ->type_name("SECONDS")
      ->check(positive());
}

}  // namespace graft::cli

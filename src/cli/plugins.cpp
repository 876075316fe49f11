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
#include "present/json/plugins_json.hpp"
#include "present/text/plugins_text.hpp"

namespace graft::cli {
namespace {

void check_engines(const Console& console, const toolkit::PluginsRequest& request, toolkit::PluginsReport& report) {
  const DeferInterrupts defer;
  Progress progress(console);
  toolkit::check_engines(report, request, watch_of(progress), trial_details(console, progress));
}

Exit plugins(const Console& console, const toolkit::PluginsRequest& request) {
  toolkit::PluginsReport report = toolkit::list_plugins(
      request, [&](const std::vector<std::string>& question) { return ask_engine_driver(console, question); });
  if (request.check) {
    check_engines(console, request, report);
    console.print(present::checks_text(report, console.verbose));
  } else {
    console.print(present::plugins_text(report, request.libraries));
  }
  console.result(present::to_json(report, request.check));
  return report.checks.failed == 0 ? Exit::done : Exit::answer_is_no;
}

}  // namespace

void add_plugins(Program& program) {
  const auto arguments = std::make_shared<toolkit::PluginsRequest>();
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

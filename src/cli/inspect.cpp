// graft inspect: reports how each node will run in TensorRT, judged by rules or by the installed TensorRT.
#include "graft/toolkit/inspect.hpp"

#include <memory>
#include <string>

#include "cli/interrupts.hpp"
#include "cli/model_arguments.hpp"
#include "cli/page.hpp"
#include "cli/probe_options.hpp"
#include "cli/program.hpp"
#include "cli/release_option.hpp"
#include "cli/watch.hpp"
#include "graft/error.hpp"
#include "present/html/inspect_page.hpp"
#include "present/json/inspect_json.hpp"
#include "present/text/inspect_text.hpp"
#include "present/text/model_text.hpp"

namespace graft::cli {
namespace {

struct InspectArguments {
  ModelArguments model;
  ProbeArguments probe;
  std::string release;
  std::string report;
  bool all = false;      ///< Whether every node is printed.
  bool convert = false;  ///< Whether the result of `graft convert` is inspected.
};

report::InspectReport inspect(const Console& console, const InspectArguments& arguments) {
  toolkit::InspectOptions options = inspect_options_of(arguments.probe);
  options.convert = arguments.convert;
  options.release = arguments.release;
  if (!options.release.empty()) options.judge = toolkit::Judge::automatic;  // --probe none has no further effect
  const toolkit::ImportOptions import = import_options(arguments.model);
  const bool asks_tensorrt = options.release.empty() && options.judge != toolkit::Judge::rule;
  const DeferInterrupts defer(true);
  Progress progress(console);
  if (asks_tensorrt) {
    options.watch = watch_of(progress);
    options.on_trial = trial_details(console, progress);
  }
  report::InspectReport report = toolkit::inspect(arguments.model.model, import, options);
  progress.clear();
  return report;
}

Exit inspect_model(const Console& console, const InspectArguments& arguments) {
  check_files_apart(report_files(arguments.report), files_of(arguments.model));
  check_report(arguments.report);
  check_probe_options(arguments.probe, arguments.release.empty() ? "" : "--for");
  const report::InspectReport report = inspect(console, arguments);
  if (!arguments.probe.reduce.empty() && report.probe && report.probe->reduced.empty()) {
    console.warn(present::nothing_reduced_text(report, arguments.probe.reduce));
  }
  for (const std::string& warning : report.warnings) console.warn(warning);

  console.print(present::inspect_text(report, arguments.all || console.verbose));
  for (const std::string& warning : present::plugin_warnings(report)) console.warn(warning);
  console.print(present::probe_text(report));
  if (!arguments.report.empty()) write_report(console, present::inspect_page(report), arguments.report);
  if (console.json) console.result(present::inspect_json(report));
  return report.runs().value_or(false) ? Exit::done : Exit::answer_is_no;
}

}  // namespace

void add_inspect(Program& program) {
  const auto arguments = std::make_shared<InspectArguments>();
  Command* command = program.add_command(
      "inspect",
      "reports a model's inputs and outputs, and how each node will run in TensorRT: the installed TensorRT parses and "
      "builds the model, or Graft's rules judge it if TensorRT is not installed. Exit code 0 if it builds, as it is or "
      "after `graft convert`; 1 if a node does not run or this is unknown",
      "graft inspect digits.onnx\n"
      "  graft inspect digits.onnx --for tensorrt-10.13\n"
      "  graft inspect digits.onnx --probe none\n"
      "  graft inspect digits.onnx --shapes image=1x1x8x8..8x1x8x8..64x1x8x8\n"
      "  graft inspect model.onnx --plugin-lib libmine.so --reduce smallest.onnx",
      [arguments](const Console& c) { return inspect_model(c, *arguments); });
  add_model_files(*command, arguments->model);
  program.add_operators_option(*command);
  add_input_shapes(*command, arguments->model);
  add_kept_outputs(*command, arguments->model);
  command->add_flag("--convert", arguments->convert,
                    "inspect the result of `graft convert`, created in memory without proofs");
  command
      ->add_option("--for", arguments->release,
                   "judge by Graft's rules for this TensorRT release, such as rtx-1.5 or tensorrt-10.13, without "
                   "running the installed TensorRT (default: rules of the newest measured release)")
      ->type_name("RELEASE")
      ->check(known_release());
  command->add_flag("--all", arguments->all,
                    "list every node; by default only the problems and the number of other nodes");
  add_probe_options(
      *command, arguments->probe,
      "how nodes are judged. auto: by the parser and the builder of the installed TensorRT, with suggested sizes if "
      "--shapes has none, or by Graft's rules if TensorRT is not installed; parser; builder, which needs --shapes for "
      "inputs with dynamic dimensions; none: only by the rules (default: auto)");
  command
      ->add_option(
          "--reduce", arguments->probe.reduce,
          "ONNX file to write: the smallest part of the model that TensorRT refuses, fails to build or crashes on; "
          "several such parts become several files, the most severe failure first: out.onnx, out.2.onnx ...")
      ->type_name("FILE");
  add_report_option(*command, arguments->report, "the network, colored by verdict, and every node with the reason");
}

}  // namespace graft::cli

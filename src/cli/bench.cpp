// graft bench: measures the speed of operators in comparison with PyTorch, and of a model on the CPU.
#include "graft/toolkit/bench.hpp"

#include <fmt/format.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "cli/interrupts.hpp"
#include "cli/model_arguments.hpp"
#include "cli/page.hpp"
#include "cli/program.hpp"
#include "cli/watch.hpp"
#include "graft/error.hpp"
#include "graft/toolkit/import.hpp"
#include "present/html/bench_page.hpp"
#include "present/json/fields.hpp"
#include "present/text/bench_text.hpp"

namespace graft::cli {
namespace {

struct BenchArguments {
  std::string model;
  std::string op;
  std::string device;
  std::string match;
  std::string report;
  std::vector<std::string> inputs;
  double time_limit = 0;
  std::optional<std::uint32_t> seed;
  std::uint32_t cases = 60;
  bool without_peers = false;
};

Exit bench_operators(const Console& console, const BenchArguments& arguments) {
  const DeferInterrupts defer;
  Progress progress(console);
  const toolkit::OperatorTimes times =
      toolkit::bench_operators({.operators = arguments.op,
                                .device = arguments.device.empty() ? "cuda" : arguments.device,
                                .match = arguments.match,
                                .time_limit = arguments.time_limit,
                                .seed = arguments.seed,
                                .cases = arguments.cases,
                                .peers = !arguments.without_peers,
                                .on_log =
                                    [&](std::string_view /*severity*/, std::string_view message) {
                                      if (console.verbose) progress.clear();
                                      console.detail(message);
                                    },
                                .watch = watch_of(progress)});
  progress.clear();
  console.print(present::operators_text(times));
  if (!arguments.report.empty()) write_report(console, present::page_of_operators(times), arguments.report);
  const std::vector<std::string> warnings = present::operators_warnings(times);
  for (const std::string& warning : warnings) console.warn(warning);
  console.result(present::json_of_fields(times));
  return warnings.empty() ? Exit::done : Exit::answer_is_no;
}

Exit bench_model(const Console& console, const BenchArguments& arguments) {
  if (arguments.device == "cuda") {
    throw Error("--device cuda: models are timed on the CPU only\nRemove --device, or time an operator: --op NAME");
  }
  check_is_onnx(arguments.model);
  const toolkit::Model model = toolkit::load(arguments.model);
  const TypedShapes shapes = parse_shapes("--input", arguments.inputs, false);
  Progress progress(console);
  toolkit::ModelBench options{.shapes = {shapes.begin(), shapes.end()}, .watch = watch_of(progress)};
  if (arguments.time_limit > 0) options.time_limit = arguments.time_limit;
  const toolkit::ModelTimes times = toolkit::bench_model(model, options);
  progress.clear();
  if (!arguments.report.empty()) {
    write_report(console, present::page_of_model(times), arguments.report);
  }
  console.print(present::model_times_text(times));
  if (!times.why_sizes.empty()) console.say(times.why_sizes);
  console.result(present::json_of_fields(times));
  return Exit::done;
}

Exit bench(const Console& console, const BenchArguments& arguments) {
  if (arguments.op.empty() == arguments.model.empty()) {
    throw Error("graft bench: specify either MODEL or --op NAME, and not both\n`graft bench --help` shows the usage");
  }
  if (arguments.seed && arguments.op.empty()) {
    throw Error(
        "--random: this option creates random problems for operators, and no operator is selected\nAdd --op all or "
        "--op NAME");
  }
  check_files_apart(report_files(arguments.report), {{"the input model", arguments.model}});
  check_report(arguments.report);
  return arguments.op.empty() ? bench_model(console, arguments) : bench_operators(console, arguments);
}

}  // namespace

void add_bench(Program& program) {
  const auto arguments = std::make_shared<BenchArguments>();
  Command* command = program.add_command(
      "bench",
      "times operators and compares them with PyTorch and with the bandwidth of a copy, or times a model on the CPU",
      "graft bench --op L2Normalize --device cuda --report speed.html",
      [arguments](const Console& c) { return bench(c, *arguments); });
  command->add_option("MODEL", arguments->model, "an ONNX model, timed on the CPU with synthetic inputs");
  command->add_option("--op", arguments->op, "an operator, several joined by commas, or all")->type_name("NAME");
  command
      ->add_option(
          "--device", arguments->device,
          "cuda: every type, compared with PyTorch eager and torch.compile; cpu: small cases in f32, reference kernels "
          "compared with PyTorch and ONNX Runtime if installed (default: cuda; for a model cpu)")
      ->type_name("DEVICE")
      ->check(one_of({"cuda", "cpu"}));
  Option* random =
      command
          ->add_option("--random", arguments->seed,
                       "time random problems, created from this seed and each operator's ranges, instead of the listed "
                       "cases; prints the geometric mean and the worst case relative to the fastest peer")
          ->type_name("SEED");
  command->add_option("--cases", arguments->cases, "number of random problems for each operator (default: 60)")
      ->type_name("N")
      ->needs(random)
      ->check(positive());
  command->add_option("--match", arguments->match, "time only the cases whose name contains this text")
      ->type_name("TEXT");
  command->add_flag("--no-peers", arguments->without_peers, "time only Graft's kernels");
  command->add_option("--input", arguments->inputs, "shape of a model's input, NAME:1x3x224x224; repeatable")
      ->type_name("SHAPE");
  command
      ->add_option("--time-limit", arguments->time_limit,
                   "start no further case after this many seconds (default: no limit; model: 5)")
      ->type_name("SECONDS")
      ->check(positive());
  add_report_option(*command, arguments->report, "bar charts and every figure");
  program.add_operators_option(*command);
}

}  // namespace graft::cli

// graft quantize: fills the options of the public `quantize`, and presents the report.
#include "graft/toolkit/quantize.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "cli/console.hpp"
#include "cli/engine_option.hpp"
#include "cli/interrupts.hpp"
#include "cli/model_arguments.hpp"
#include "cli/page.hpp"
#include "cli/program.hpp"
#include "cli/watch.hpp"
#include "core/guide_pages.hpp"
#include "graft/error.hpp"
#include "graft/toolkit/files.hpp"
#include "graft/toolkit/import.hpp"
#include "graft/toolkit/metric_command.hpp"
#include "graft/toolkit/ray.hpp"
#include "present/html/quantize_page.hpp"
#include "present/json/fields.hpp"
#include "present/text/quantize_text.hpp"
#include "present/text/value_check_text.hpp"

namespace graft::cli {
namespace {

struct QuantizeArguments {
  std::string model;
  std::string output;
  std::string precision;
  toolkit::DataFiles data;
  std::vector<std::string> inputs;
  std::vector<std::string> keep;
  std::vector<std::string> only;
  std::string report;
  std::optional<double> limit;
  bool typed_io = false;
  bool explain = false;
  std::string engine = default_engine_name;

  // Options of int8 and f8 only.
  std::int64_t samples = 0;
  std::string method;  ///< Empty for the default method of the precision.
  std::optional<double> percentile;
  std::string cache;
  std::string write_cache;
  std::string state;
  std::vector<std::string> improve;
  std::string rest = "f32";
  std::optional<std::string> metric;
  std::optional<double> max_drop;
  std::vector<std::string> judge_outputs;
  std::optional<std::int64_t> judged;
  std::string ray;
};

void add_int8_options(Command& command, QuantizeArguments& arguments) {
  const auto add = [](Option* option, const char* type) { return option->type_name(type)->group("int8 and f8"); };
  add(command.add_option("--samples", arguments.samples, "maximum number of calibration samples"), "NUMBER")
      ->check(at_least(1, "an integer of at least 1"));
  add(command.add_option(
          "--method", arguments.method,
          "calibration method: percentile (default for int8), entropy (int8 only), minmax (default for f8) or mse"),
      "METHOD")
      ->check(one_of({"entropy", "minmax", "percentile", "mse"}));
  add(command.add_option("--percentile", arguments.percentile,
                         "share of a tensor's values inside its range, in percent (default: 99.99)"),
      "NUMBER")
      ->check(between(50, 100));
  add(command.add_option("--cache", arguments.cache,
                         "int8: read the scales from a calibration cache of TensorRT 7 to 10"),
      "FILE");
  add(command.add_option("--write-cache", arguments.write_cache,
                         "int8: write the scales to a calibration cache; without -o and --precision, the scales of an "
                         "already quantized MODEL"),
      "FILE");
  add(command.add_option("--state", arguments.state,
                         "file for the calibration's progress; an interrupted run continues from it"),
      "FILE");
  add(command.add_option("--improve", arguments.improve,
                         "methods that reduce the error: equalize (cross-layer equalization), smooth (SmoothQuant), "
                         "round (AdaRound, int8 only), bias (bias correction); several are separated by commas"),
      "LIST")
      ->delimiter(',')
      ->check(one_of({"equalize", "smooth", "round", "bias"}));
  add(command.add_option("--rest", arguments.rest,
                         "type of the nodes that are not quantized to int8 or f8: f32 (default), or f16 or bf16 where "
                         "accuracy permits it"),
      "TYPE")
      ->check(one_of({"f32", "f16", "fp16", "bf16"}));
  add(command.add_option("--metric", arguments.metric,
                         "shell command that is run for each candidate model, whose file replaces {} or is "
                         "appended; the last line of its output is a number, and higher is better"),
      "COMMAND");
  add(command.add_option(
          "--max-drop", arguments.max_drop,
          "maximum drop of the metric; without --metric: of the accuracy with --labels, or else of "
          "the top-1 agreement with f32, in percent; the layers that lose most stay in f32 until it is met"),
      "NUMBER")
      ->check(at_least(0, "a number of at least 0"));
  add_labels(command, arguments.data, arguments.judge_outputs, "int8 and f8");
  add(command.add_option("--judged", arguments.judged,
                         "maximum number of samples whose outputs are compared (default: 64)"),
      "NUMBER")
      ->check(at_least(1, "an integer of at least 1"));
  add(command.add_option("--ray", arguments.ray,
                         "calibrate on the machines of the Ray cluster at this address, for example auto or "
                         "ray://HOST:10001 (" +
                             guide_page("many_machines") + ")"),
      "ADDRESS");
}

/// Writes the scales of a quantized model to a calibration cache for TensorRT 7 to 10.
Exit extract_cache(const Console& console, const QuantizeArguments& arguments) {
  check_is_onnx(arguments.model);
  const std::size_t scales = toolkit::write_calibration_cache(toolkit::load(arguments.model), arguments.write_cache);
  console.say(
      fmt::format("wrote {}: {}", console.paint(arguments.write_cache, Color::strong), count_text(scales, "scale")));
  console.result({{"schema", report::QuantizeReport::schema.name},
                  {"version", report::QuantizeReport::schema.version},
                  {"model", arguments.model},
                  {"cache", arguments.write_cache},
                  {"scales", scales}});
  return Exit::done;
}

/// Throws Error, before minutes of work, if an output file would overwrite an input or another output.
void check_output(const QuantizeArguments& arguments) {
  std::vector<NamedFile> written = report_files(arguments.report);
  written.push_back({"-o", arguments.output});
  written.push_back({"--write-cache", arguments.write_cache});
  written.push_back({"--state", arguments.state});
  std::vector<NamedFile> read = files_of(data_option, arguments.data);
  read.push_back({"the input model", arguments.model});
  read.push_back({"the file of --cache", arguments.cache});
  check_files_apart(written, read);
}

/// Returns a function that passes a model to the user's shell command and returns the number that the command prints
/// (toolkit::measure). With -v the command's standard error is printed. Ctrl-C also ends the command.
toolkit::Metric metric_of(const Console& console, const std::string& command) {
  return [&console, command](const toolkit::Model& model) {
    const DeferInterrupts defer;
    return toolkit::measure(
        {.text = command, .on_error = [&](std::string_view line) { console.detail(line); }, .cancel = interruption()},
        model);
  };
}

toolkit::Int8Options int8_options_of(const Console& console, const QuantizeArguments& arguments) {
  toolkit::Int8Options options;
  options.samples = arguments.samples;
  options.calibration = report::find_threshold_method(arguments.method);
  options.percentile = arguments.percentile;
  options.cache = arguments.cache;
  options.write_cache = arguments.write_cache;
  options.state = arguments.state;
  const auto improves = [&](std::string_view what) { return std::ranges::count(arguments.improve, what) != 0; };
  options.improve = {.equalize = improves("equalize"),
                     .smooth = improves("smooth"),
                     .round = improves("round"),
                     .bias = improves("bias")};
  options.rest = report::find_precision(arguments.rest);
  if (arguments.metric) options.metric = metric_of(console, *arguments.metric);
  options.max_drop = arguments.max_drop;
  options.judge_outputs = arguments.judge_outputs;
  options.judged = arguments.judged;
  return options;
}

toolkit::QuantizeOptions options_of(const Console& console, const QuantizeArguments& arguments) {
  toolkit::QuantizeOptions options;
  options.precision = report::find_precision(arguments.precision).value();
  const auto shapes = parse_shapes("--input", arguments.inputs, false);
  options.shapes = {shapes.begin(), shapes.end()};
  options.keep = arguments.keep;
  options.only = arguments.only;
  options.typed_io = arguments.typed_io;
  options.limit_db = arguments.limit;
  options.int8 = int8_options_of(console, arguments);
  options.data_files = arguments.data;
  options.output = arguments.output;
  options.engine = engine_of(arguments.engine);
  return options;
}

report::QuantizeReport quantize_file(const Console& console, const QuantizeArguments& arguments,
                                     toolkit::QuantizeOptions options) {
  const DeferInterrupts defer(true);
  Progress progress(console);
  options.watch = watch_of(progress);
  options.on_note = [&](const std::string& note) {
    progress.clear();
    console.note(note);
  };
  if (!arguments.ray.empty()) toolkit::calibrate_in_ray(arguments.ray, options);
  report::QuantizeReport report = toolkit::quantize(std::filesystem::path(arguments.model), options);
  progress.clear();
  return report;
}

Exit quantize(const Console& console, const QuantizeArguments& arguments) {
  if (arguments.precision.empty() && arguments.output.empty() && !arguments.write_cache.empty()) {
    return extract_cache(console, arguments);
  }
  for (const auto& [option, value] :
       {std::pair("-o", &arguments.output), std::pair("--precision", &arguments.precision)}) {
    if (value->empty())
      throw Error(fmt::format(
          "{0} is missing\nAdd {0}; only a command with --write-cache that has neither -o nor --precision may omit it",
          option));
  }
  check_is_onnx(arguments.model);
  toolkit::QuantizeOptions options = options_of(console, arguments);
  check_output(arguments);
  check_report(arguments.report);
  const report::QuantizeReport report = quantize_file(console, arguments, std::move(options));
  console.say(fmt::format("wrote {}: {}", written_text(console, arguments.output, report.external_data),
                          present::quantize_summary(report)));
  console.say(present::quantize_text(report, arguments.explain));
  if (report.check) console.say(present::check_text(*report.check, report.check->command));
  if (!report.met()) console.warn(present::missed_limit_text(report));
  if (!arguments.report.empty()) write_report(console, present::quantize_page(report), arguments.report);
  console.result(present::json_of_report(report));
  return report.met() ? Exit::done : Exit::answer_is_no;
}

}  // namespace

void add_quantize(Program& program) {
  const auto arguments = std::make_shared<QuantizeArguments>();
  Command* command = program.add_command(
      "quantize",
      "writes a strongly typed model in f16, bf16, int8 or f8, whose types do not depend on the builder's flags, and "
      "keeps nodes in f32 that would lose too much; exit code 1 if an output still misses the limit",
      "graft quantize digits.onnx -o digits.int8.onnx --precision int8 --data image=digits_test.npz:images",
      [arguments](const Console& c) { return quantize(c, *arguments); });
  command->add_option("MODEL", arguments->model, "an ONNX model; `graft convert` creates one from other formats")
      ->required();
  command->add_option("-o,--output", arguments->output, "ONNX model to write")->type_name("FILE");
  command->add_option("--precision", arguments->precision, "f16 (also called fp16), bf16, int8 or f8 (fp8, f8e4m3fn)")
      ->type_name("TYPE")
      ->check(one_of({"f16", "fp16", "bf16", "int8", "f8", "fp8"}));
  add_data(*command, data_option, arguments->data, "typical inputs, which int8 and f8 need");
  command->add_option("--input", arguments->inputs, "shape of a synthetic input, NAME:1x3x224x224; repeatable")
      ->type_name("SHAPE");
  command
      ->add_option(
          "--keep", arguments->keep,
          "nodes that stay in f32: the name of a node, a tensor or an operator, with wildcards * and ?; repeatable")
      ->type_name("PATTERN");
  command->add_option("--only", arguments->only, "the only nodes that may leave f32; patterns as for --keep")
      ->type_name("PATTERN");
  command->add_flag("--typed-io", arguments->typed_io,
                    "inputs and outputs also have the new type; by default they stay f32");
  command
      ->add_option("--limit", arguments->limit,
                   "required signal-to-noise ratio of each output in dB; nodes stay in f32 until it is reached "
                   "(default: 40; 25 in bf16; 20 in int8 and f8, where the default keeps no node in f32)")
      ->type_name("DB")
      ->check(at_least(0, "a number of at least 0"));
  add_int8_options(*command, *arguments);
  program.add_operators_option(*command);
  add_engine_option(*command, arguments->engine);
  add_report_option(*command, arguments->report, "the typed network, colored by the types of its nodes");
  command->add_flag("--explain", arguments->explain, "print the type of every node, and the reason");
}

}  // namespace graft::cli

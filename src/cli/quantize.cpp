// graft quantize: its arguments, and the functions that all precisions share.
#include "cli/quantize.hpp"

#include <fmt/format.h>

#include <memory>

#include "cli/interrupts.hpp"
#include "cli/model_arguments.hpp"
#include "cli/page.hpp"
#include "cli/tensors.hpp"
#include "graft/error.hpp"
#include "graft/toolkit/import.hpp"
#include "graft/toolkit/quantize.hpp"
#include "present/json/quantize_json.hpp"
#include "toolkit/files.hpp"

namespace graft::cli {
namespace {

/// Throws Error if the user gave an option that has no meaning with this precision.
void refuse(const std::vector<const Option*>& options, const std::string& precision) {
  for (const Option* option : options) {
    if (option->count() == 0) continue;
    throw Error(fmt::format("{}: this option does not apply to --precision {}", option->get_name(), precision));
  }
}

void add_int8_options(Command& command, QuantizeArguments& arguments) {
  const auto add = [&](Option* option, const char* type) {
    option->type_name(type)->group("int8 and f8");
    arguments.of_int8.push_back(option);
    return option;
  };
  add(command.add_option("--recipe", arguments.recipe,
                         "YAML file that describes how images are prepared: resize, crop, mean, scale ..."),
      "FILE");
  add(command.add_option("--samples", arguments.samples, "maximum number of calibration samples"), "NUMBER")
      ->check(at_least(1, "an integer from 1"));
  arguments.method_option =
      add(command.add_option(
              "--method", arguments.method,
              "calibration method: percentile (default for int8), entropy (int8 only), minmax (default for f8) or mse"),
          "METHOD")
          ->check(one_of({"entropy", "minmax", "percentile", "mse"}));
  arguments.percentile_option =
      add(command.add_option("--percentile", arguments.percentile,
                             "share of a tensor's values inside its range, in percent (default: 99.99)"),
          "NUMBER")
          ->check(between(50, 100));
  add(command.add_option("--cache", arguments.cache, "int8: scales from a calibration cache of TensorRT 7 to 10"),
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
  arguments.metric_option =
      add(command.add_option("--metric", arguments.metric,
                             "shell command that is run for each candidate model, whose file replaces {} or is "
                             "appended; the last line of its output is a number, and higher is better"),
          "COMMAND");
  arguments.max_drop_option =
      add(command.add_option("--max-drop", arguments.max_drop,
                             "maximum drop of the metric; without --metric: of the top-1 agreement with f32, in "
                             "percent; the layers that lose most stay in f32 until it is met"),
          "NUMBER")
          ->check(at_least(0, "a number from 0"));
  add(command.add_option("--judged", arguments.judged,
                         "maximum number of samples whose outputs are compared (default: 64)"),
      "NUMBER")
      ->check(at_least(1, "an integer from 1"));
}

/// Writes the scales of a quantized model to a calibration cache for TensorRT 7 to 10.
Exit extract_cache(const Console& console, const QuantizeArguments& arguments) {
  check_is_onnx(arguments.model);
  const std::size_t scales = toolkit::write_calibration_cache(toolkit::load(arguments.model), arguments.write_cache);
  console.say(
      fmt::format("wrote {}: {}", console.paint(arguments.write_cache, Color::strong), count_text(scales, "scale")));
  console.result(present::scales_json(arguments.model, arguments.write_cache, scales));
  return Exit::done;
}

Exit quantize(const Console& console, const QuantizeArguments& arguments) {
  if (arguments.precision.empty() && arguments.output.empty() && !arguments.write_cache.empty()) {
    return extract_cache(console, arguments);
  }
  for (const auto& [option, value] :
       {std::pair("-o", &arguments.output), std::pair("--precision", &arguments.precision)}) {
    if (value->empty())
      throw Error(fmt::format("{} is missing\nIt is optional only if --write-cache is given alone", option));
  }
  const bool has_scales = arguments.precision == "int8" || arguments.precision == "f8" || arguments.precision == "fp8";
  refuse(has_scales ? arguments.of_types : arguments.of_int8, arguments.precision);
  return has_scales ? quantize_int8(console, arguments) : quantize_types(console, arguments);
}

}  // namespace

void check_output(const QuantizeArguments& arguments) {
  std::vector<NamedFile> written = report_files(arguments.report);
  written.push_back({"-o", arguments.output});
  written.push_back({"--write-cache", arguments.write_cache});
  written.push_back({"--state", arguments.state});
  std::vector<NamedFile> read = tensor_files("--data", arguments.data);
  read.push_back({"the input model", arguments.model});
  read.push_back({"the recipe", arguments.recipe});
  read.push_back({"the file of --cache", arguments.cache});
  check_files_apart(written, read);
  const DeferInterrupts defer;
  toolkit::check_writable(arguments.output);
}

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
  command
      ->add_option("--data", arguments->data,
                   "input data: NAME=FILE.npy, NAME=FILE.npz:ARRAY or FILE.npz; for int8 and f8 also a FILE.npy, and a "
                   "folder of images or of such files; the first axis counts samples")
      ->type_name("TENSOR");
  arguments->of_types.push_back(
      command->add_option("--input", arguments->inputs, "shape of a synthetic input, NAME:1x3x224x224; repeatable")
          ->type_name("SHAPE"));
  command
      ->add_option(
          "--keep", arguments->keep,
          "nodes that stay in f32: the name of a node, a tensor or an operator, with wildcards * and ?; repeatable")
      ->type_name("PATTERN");
  command->add_option("--only", arguments->only, "the only nodes that may leave f32; patterns as for --keep")
      ->type_name("PATTERN");
  arguments->of_types.push_back(command->add_flag(
      "--typed-io", arguments->typed_io, "inputs and outputs also have the new type; by default they stay f32"));
  arguments->limit_option =
      command
          ->add_option("--limit", arguments->limit,
                       "required signal-to-noise ratio of each output in dB; nodes stay in f32 until it is reached "
                       "(default: 40; 25 in bf16; 20 in int8 and f8, where the default keeps no node in f32)")
          ->type_name("DB")
          ->check(at_least(0, "a number from 0"));
  add_int8_options(*command, *arguments);
  program.add_operators_option(*command);
  add_engine_option(*command, arguments->engine);
  add_report_option(*command, arguments->report, "the typed network, colored by the types of its nodes");
  command->add_flag("--explain", arguments->explain, "print the type of every node, and the reason");
}

}  // namespace graft::cli

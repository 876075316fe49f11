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
    throw Error(fmt::format("{}: it has no meaning with --precision {}", option->get_name(), precision));
  }
}

void add_int8_options(Command& command, QuantizeArguments& arguments) {
  const auto add = [&](Option* option, const char* type) {
    option->type_name(type)->group("int8 and f8");
    arguments.of_int8.push_back(option);
    return option;
  };
  add(command.add_option("--recipe", arguments.recipe,
                         "how images are prepared: YAML with resize, crop, mean, scale ..."),
      "FILE");
  add(command.add_option("--samples", arguments.samples, "calibrate with so many samples at most"), "NUMBER")
      ->check(at_least(1, "an integer from 1"));
  arguments.method_option =
      add(command.add_option("--method", arguments.method,
                             "percentile (int8 without it), entropy (int8 only), minmax (f8 without it) or mse"),
          "METHOD")
          ->check(one_of({"entropy", "minmax", "percentile", "mse"}));
  arguments.percentile_option =
      add(command.add_option("--percentile", arguments.percentile, "how much of a tensor is kept, in per cent (99.99)"),
          "NUMBER")
          ->check(between(50, 100));
  add(command.add_option("--cache", arguments.cache, "int8: scales from a calibration cache of TensorRT 7 to 10"),
      "FILE");
  add(command.add_option(
          "--write-cache", arguments.write_cache,
          "int8: write the scales as such a cache; without -o and --precision those of a model that has them"),
      "FILE");
  add(command.add_option("--state", arguments.state, "keep counts here, and go on where an interrupted run ended"),
      "FILE");
  add(command.add_option(
          "--improve", arguments.improve,
          "what is done so that less is lost: equalize (ranges of neighboring layers), smooth (inputs of "
          "layers), round (weights up or down, int8 only), bias (what rounding adds on average); several with commas"),
      "LIST")
      ->delimiter(',')
      ->check(one_of({"equalize", "smooth", "round", "bias"}));
  add(command.add_option("--rest", arguments.rest,
                         "what the nodes that do not become int8 or f8 compute in: f32 (as without "
                         "it), f16 or bf16, where that breaks nothing"),
      "TYPE")
      ->check(one_of({"f32", "f16", "fp16", "bf16"}));
  arguments.metric_option = add(
      command.add_option("--metric", arguments.metric,
                         "run by the shell for each model that is tried, its file in place of {}, or at the end; the "
                         "last line that it prints is a number, more is better"),
      "COMMAND");
  arguments.max_drop_option =
      add(command.add_option("--max-drop", arguments.max_drop,
                             "how much the metric may fall; without --metric: per cent of the outputs' rows whose "
                             "largest element may move; layers that lose most stay in f32 until it is met"),
          "NUMBER")
          ->check(at_least(0, "a number from 0"));
  add(command.add_option("--judged", arguments.judged, "compare outputs for so many samples at most (64)"), "NUMBER")
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
    if (value->empty()) throw Error(fmt::format("{} is missing\nOnly --write-cache by itself does without it", option));
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
  read.push_back({"the model itself", arguments.model});
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
      "writes a model in f16, bf16, int8 or f8, typed, as every TensorRT builds it, and keeps in f32 "
      "what would break; exit "
      "code 1 if an output still misses the limit",
      "graft quantize digits.onnx -o digits.int8.onnx --precision int8 --data image=digits_test.npz:images",
      [arguments](const Console& c) { return quantize(c, *arguments); });
  command->add_option("MODEL", arguments->model, "an ONNX model; `graft convert` makes one of other formats")
      ->required();
  command->add_option("-o,--output", arguments->output, "the ONNX model to write")->type_name("FILE");
  command->add_option("--precision", arguments->precision, "f16 (also called fp16), bf16, int8 or f8 (fp8, f8e4m3fn)")
      ->type_name("TYPE")
      ->check(one_of({"f16", "fp16", "bf16", "int8", "f8", "fp8"}));
  command
      ->add_option(
          "--data", arguments->data,
          "inputs to decide by: NAME=FILE.npy, NAME=FILE.npz:ARRAY or FILE.npz; for int8 and f8 also a FILE.npy, and "
          "a folder of images or of such files; the first axis counts samples")
      ->type_name("TENSOR");
  arguments->of_types.push_back(
      command->add_option("--input", arguments->inputs, "shape of a synthetic input, NAME:1x3x224x224; once for each")
          ->type_name("SHAPE"));
  command
      ->add_option("--keep", arguments->keep,
                   "what stays in f32: the name of a node, a tensor or an operator, with * and ?; once for each")
      ->type_name("PATTERN");
  command->add_option("--only", arguments->only, "what may leave f32, and nothing else; as --keep")
      ->type_name("PATTERN");
  arguments->of_types.push_back(command->add_flag("--typed-io", arguments->typed_io,
                                                  "inputs and outputs have the type too; without it they are f32"));
  arguments->limit_option =
      command
          ->add_option("--limit", arguments->limit,
                       "signal to noise ratio of each output that is enough, in dB (40; 25 in "
                       "bf16, for which nodes stay in f32; 20 in int8 and f8, for which none does)")
          ->type_name("DB")
          ->check(at_least(0, "a number from 0"));
  add_int8_options(*command, *arguments);
  program.add_operators_option(*command);
  add_engine_option(*command, arguments->engine);
  add_report_option(*command, arguments->report, "the typed network, colored by the types of its nodes");
  command->add_flag("--explain", arguments->explain, "the type of every node, and why");
}

}  // namespace graft::cli

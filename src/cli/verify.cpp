// graft verify: runs two models on the same inputs and compares their outputs, or all their tensors.
#include "graft/toolkit/verify.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cstdint>
#include <filesystem>
#include <locale>
#include <map>
#include <memory>
#include <optional>
#include <sstream>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "cli/engine_option.hpp"
#include "cli/model_arguments.hpp"
#include "cli/page.hpp"
#include "cli/program.hpp"
#include "cli/watch.hpp"
#include "core/guide_pages.hpp"
#include "graft/error.hpp"
#include "graft/toolkit/ray.hpp"
#include "graft/toolkit/verify_layers.hpp"
#include "present/html/layers_page.hpp"
#include "present/html/verify_page.hpp"
#include "present/json/fields.hpp"
#include "present/text/layers_text.hpp"
#include "present/text/verify_text.hpp"

namespace graft::cli {
namespace {

struct VerifyArguments {
  std::vector<std::string> files;
  std::vector<std::string> outputs;
  toolkit::DataFiles data;
  std::vector<std::string> judge_outputs;
  std::string ray;
  std::vector<std::string> inputs;
  std::vector<std::string> ranges;
  std::size_t seeds = 0;  ///< The number of runs with synthetic inputs; 0 for the default.
  std::optional<double> relative;
  std::optional<double> absolute;
  std::optional<double> snr;
  std::string kernels = "functions";
  std::string engine = default_engine_name;
  std::string report;
  bool layers = false;
  std::string reduce;
  std::string emulate;
};

/// The files of the two models of the command line.
struct Pair {
  toolkit::ModelFiles reference;
  toolkit::ModelFiles candidate;
};

/// Returns the files of both models. A .caffemodel belongs to the network before it on the command line.
Pair pair_of(const VerifyArguments& arguments) {
  std::vector<toolkit::ModelFiles> models;
  for (const std::string& file : arguments.files) {
    if (std::filesystem::path(file).extension() == ".caffemodel" && !models.empty() && models.back().weights.empty()) {
      models.back().weights = file;
    } else {
      models.push_back({.model = file});
    }
  }
  const bool may_be_one = !arguments.emulate.empty();
  if (models.size() == 1 && may_be_one) models.push_back(models.front());
  if (models.size() != 2) {
    throw Error(fmt::format(
        "graft verify: found {}: {}\nPass the reference and the candidate, or one model{}; the weights of a Caffe "
        "network follow the network",
        count_text(models.size(), "model"), fmt::join(arguments.files, ", "), may_be_one ? "" : " with --emulate"));
  }
  models[0].outputs = arguments.outputs;
  if (models[0].model == models[1].model) models[1].outputs = arguments.outputs;
  return {.reference = std::move(models[0]), .candidate = std::move(models[1])};
}

/// Parses ranges such as NAME=LOWEST..HIGHEST.
std::map<std::string, toolkit::Range> parse_ranges(const std::vector<std::string>& texts) {
  std::map<std::string, toolkit::Range> ranges;
  for (const std::string& text : texts) {
    const std::size_t name_end = text.rfind('=');
    const std::size_t dots = text.find("..", name_end == std::string::npos ? 0 : name_end);
    const auto number = [&](const std::string& digits) -> std::optional<double> {
      std::istringstream stream(digits);
      stream.imbue(std::locale::classic());
      double value = 0;
      const bool is_whole = stream >> value && stream.peek() == std::istringstream::traits_type::eof();
      return is_whole ? std::optional(value) : std::nullopt;
    };
    const bool has_parts = name_end != std::string::npos && name_end != 0 && dots != std::string::npos;
    const auto lowest = has_parts ? number(text.substr(name_end + 1, dots - name_end - 1)) : std::nullopt;
    const auto highest = has_parts ? number(text.substr(dots + 2)) : std::nullopt;
    if (!lowest || !highest) {
      throw Error(
          fmt::format("--range {}: this is not a range\nWrite NAME=LOWEST..HIGHEST, for example image=0..255", text));
    }
    const std::string name = text.substr(0, name_end);
    if (!ranges.emplace(name, toolkit::Range{.lowest = *lowest, .highest = *highest}).second) {
      throw Error(
          fmt::format("--range {}: a range for '{}' was already specified\nRemove one of the two ranges", text, name));
    }
  }
  return ranges;
}

/// Returns the options of the comparison. With --data, --seeds has no effect.
toolkit::VerifyOptions options_of(const VerifyArguments& arguments) {
  toolkit::VerifyOptions options;
  const TypedShapes shapes = parse_shapes("--input", arguments.inputs, false);
  options.shapes = {shapes.begin(), shapes.end()};
  options.data_files = arguments.data;
  options.ranges = parse_ranges(arguments.ranges);
  options.relative = arguments.relative;
  options.absolute = arguments.absolute;
  options.snr_db = arguments.snr;
  options.judge_outputs = arguments.judge_outputs;
  options.own_kernels = arguments.kernels == "own";
  if (arguments.data.empty()) options.seeds = arguments.seeds;
  options.engine = engine_of(arguments.engine);
  return options;
}

/// Returns the options with which a reduced case shows the same result as the whole models. The tolerances are left out
/// if the candidate does not run (`runs` is false), because nothing is compared then.
std::string repeated_options(const VerifyArguments& arguments, bool runs) {
  std::string text;
  if (runs && arguments.relative) text += fmt::format(" --rtol {}", *arguments.relative);
  if (runs && arguments.absolute) text += fmt::format(" --atol {}", *arguments.absolute);
  if (runs && arguments.snr) text += fmt::format(" --snr {}", *arguments.snr);
  if (arguments.kernels == "own") text += " --kernels own";
  if (arguments.engine != default_engine_name) text += " --engine " + arguments.engine;
  return text;
}

Exit exit_of(report::Verdict verdict) { return verdict == report::Verdict::same ? Exit::done : Exit::answer_is_no; }

Exit verify_layers(const Console& console, const VerifyArguments& arguments, const toolkit::ModelPair& models,
                   toolkit::VerifyOptions options) {
  Progress progress(console);
  options.watch = watch_of(progress);
  toolkit::LayersResult result =
      toolkit::verify_layers(models.reference, models.candidate, options, report::find_precision(arguments.emulate));
  progress.clear();
  for (const std::string& note : result.data_notes) console.note(note);
  console.say(present::inputs_text(result));
  console.say(present::layers_text(result, console.verbose));
  for (const std::string& warning : present::layers_warnings(result)) console.warn(warning);
  if (!arguments.reduce.empty()) {
    toolkit::save_reduced(result, arguments.reduce);
    if (result.reduced && !result.reduced->left_out.empty()) {
      console.warn(
          fmt::format("--reduce {}: these inputs are not written, because NumPy files cannot contain their types: {}; "
                      "the command below may therefore show another result",
                      arguments.reduce, fmt::join(result.reduced->left_out, ", ")));
    }
    if (auto& files = result.reduced_files) {
      files->command = present::reduced_command(*files, repeated_options(arguments, !result.failure));
      console.say(
          fmt::format("wrote {}; to reproduce the result:\n  {}", fmt::join(files->names(), ", "), files->command));
    } else {
      console.say(fmt::format(
          "{} was not written, because no node was found at which the models first differ or the candidate fails",
          arguments.reduce));
    }
  }
  if (!arguments.report.empty()) write_report(console, present::layers_page(result), arguments.report);
  console.result(present::json_of_report<report::LayersReport>(result));
  return exit_of(result.verdict());
}

Exit verify_outputs(const Console& console, const VerifyArguments& arguments, const toolkit::ModelPair& models,
                    toolkit::VerifyOptions options) {
  Progress progress(console);
  options.watch = watch_of(progress);
  if (!arguments.ray.empty()) toolkit::verify_in_ray(arguments.ray, models.reference, models.candidate, options);
  const toolkit::VerifyResult result = toolkit::verify(models.reference, models.candidate, options);
  progress.clear();
  for (const std::string& note : result.data_notes) console.note(note);
  console.say(present::verify_text(result, console.verbose));
  for (const std::string& warning : present::verify_warnings(result)) console.warn(warning);
  if (!arguments.report.empty()) write_report(console, present::verify_page(result), arguments.report);
  console.result(present::json_of_report<report::VerifyReport>(result));
  return exit_of(result.verdict());
}

Exit verify(const Console& console, const VerifyArguments& arguments) {
  std::vector<NamedFile> written = report_files(arguments.report);
  if (!arguments.reduce.empty()) {
    for (const std::string& file : toolkit::reduced_files(arguments.reduce).names()) {
      written.push_back({"--reduce", file});
    }
  }
  std::vector<NamedFile> read = files_of(data_option, arguments.data);
  for (const std::string& file : arguments.files) read.push_back({"one of the compared models", file});
  check_files_apart(written, read);
  check_report(arguments.report);
  toolkit::VerifyOptions options = options_of(arguments);
  const Pair files = pair_of(arguments);
  const toolkit::ModelPair models = toolkit::load_pair(files.reference, files.candidate, options);
  const bool layers = arguments.layers || !arguments.reduce.empty() || !arguments.emulate.empty();
  if (layers && !arguments.ray.empty()) {
    throw Error(
        "--ray: only outputs are compared on other machines, and --layers, --reduce and --emulate compare all "
        "tensors\nRemove --ray, or these options");
  }
  if (layers && !arguments.data.labels.empty()) {
    throw Error(
        "--labels: the accuracy is measured where only outputs are compared, and --layers, --reduce and --emulate "
        "compare "
        "all tensors\nRemove --labels, or these options");
  }
  return layers ? verify_layers(console, arguments, models, std::move(options))
                : verify_outputs(console, arguments, models, std::move(options));
}

}  // namespace

void add_verify(Program& program) {
  const auto arguments = std::make_shared<VerifyArguments>();
  Command* command = program.add_command(
      "verify", "runs two models on the CPU on the same inputs and compares their outputs; exit code 1 if they differ",
      "graft verify digits.onnx digits.graft.onnx --data image=digits_test.npz:images",
      [arguments](const Console& c) { return verify(c, *arguments); });
  command
      ->add_option("MODELS", arguments->files,
                   "the reference model, then the candidate, each of any format; a Caffe network (.prototxt) is "
                   "followed by its .caffemodel. With --emulate one model is enough, which is compared with itself")
      ->option_text("REFERENCE [CANDIDATE]")
      ->required()
      ->expected(1, 4);
  command
      ->add_option(
          "--keep-output", arguments->outputs,
          "tensor of a TensorFlow or Caffe reference that becomes an output, as for `graft convert`; repeatable")
      ->type_name("TENSOR");
  add_data(*command, data_option, arguments->data, "inputs (default: synthetic inputs)");
  command->add_option("--samples", arguments->data.samples, "maximum number of files of a folder (default: all)")
      ->type_name("NUMBER")
      ->check(at_least(1, "an integer of at least 1"));
  add_labels(*command, arguments->data, arguments->judge_outputs);
  command
      ->add_option("--ray", arguments->ray,
                   "run the models on the machines of the Ray cluster at this address, for example auto or "
                   "ray://HOST:10001; needs --data (" +
                       guide_page("many_machines") + ")")
      ->type_name("ADDRESS");
  command->add_option("--input", arguments->inputs, "shape of a synthetic input, NAME:1x3x224x224; repeatable")
      ->type_name("SHAPE");
  command
      ->add_option("--range", arguments->ranges,
                   "range of the values of a synthetic input, NAME=0..255; repeatable. By default it is inferred from "
                   "the first layers: a division by 255, a subtraction of means, the rows of a table; otherwise values "
                   "are normally distributed, and integers are 0 to 3, from the second run on also large if they are "
                   "not used as sizes, indices or real numbers")
      ->type_name("RANGE");
  command
      ->add_option("--seeds", arguments->seeds,
                   "number of runs with synthetic inputs (default: 3; with --layers: 1, then 3 for the outputs if all "
                   "layers agree; with --emulate: 1, or 2 for int8)")
      ->type_name("N")
      ->check(range(1, 10000));
  command->add_flag("--layers", arguments->layers,
                    "compare every tensor that both models have, and find the first node that differs");
  command
      ->add_option("--reduce", arguments->reduce,
                   "write the nodes where the models first differ as a separate model, and next to it the same nodes "
                   "of the reference and their inputs; implies --layers")
      ->type_name("FILE.onnx");
  command
      ->add_option("--emulate", arguments->emulate,
                   "emulate the candidate in this type, tensor by tensor: f16, bf16 or int8; implies --layers")
      ->type_name("TYPE")
      ->check(one_of({"f16", "bf16", "int8"}));
  command
      ->add_option(
          "--rtol", arguments->relative,
          "relative tolerance (default: the error that rounding to the type explains, or that it causes in the "
          "reference itself)")
      ->type_name("X")
      ->check(at_least(0, "a number of at least 0"));
  command->add_option("--atol", arguments->absolute, "absolute tolerance (default: 0; 1 for quantized int8 and uint8)")
      ->type_name("X")
      ->check(at_least(0, "a number of at least 0"));
  command
      ->add_option(
          "--snr", arguments->snr,
          "minimum signal-to-noise ratio of an output in dB, instead of a tolerance for each element (default: "
          "20 if the candidate was quantized to 8 bits)")
      ->type_name("DB")
      ->check(at_least(-1000, "a number of decibels, at least -1000"));
  add_report_option(*command, arguments->report, "the candidate, colored by the error of its tensors");
  program.add_operators_option(*command);
  add_engine_option(*command, arguments->engine);
  command
      ->add_option("--kernels", arguments->kernels,
                   "how the candidate's Graft operators are computed: functions or own (kernels, in the types of the "
                   "file) (default: functions)")
      ->type_name("WHICH")
      ->check(one_of({"functions", "own"}));
}

}  // namespace graft::cli

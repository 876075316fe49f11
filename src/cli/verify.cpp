// graft verify: two models on the same inputs, compared output by output.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cmath>
#include <filesystem>
#include <locale>
#include <memory>
#include <optional>
#include <sstream>
#include <utility>

#include "cli/dimensions.hpp"
#include "cli/json_values.hpp"
#include "cli/model_arguments.hpp"
#include "cli/number_checks.hpp"
#include "cli/page.hpp"
#include "cli/program.hpp"
#include "cli/quantize_page.hpp"
#include "cli/tensors.hpp"
#include "cli/verify_layers.hpp"
#include "cli/verify_page.hpp"
#include "graft/error.hpp"
#include "runtime/default_engine.hpp"
#include "verify/given_inputs.hpp"
#include "verify/layers.hpp"
#include "verify/verify_models.hpp"

namespace graft::cli {
namespace {

struct Arguments {
  std::vector<std::string> files;
  std::vector<std::string> outputs;
  std::vector<std::string> data;
  std::vector<std::string> inputs;
  std::vector<std::string> ranges;
  std::size_t seeds = 0;  ///< 0: as many as the options have by default.
  double relative = 0;
  double absolute = 0;
  double snr = 0;
  std::string kernels = "functions";
  std::string report;
  bool layers = false;
  std::string reduce;
  std::string emulate;
  const CLI::Option* relative_option = nullptr;
  const CLI::Option* absolute_option = nullptr;
  const CLI::Option* snr_option = nullptr;
};

Json to_json(const OutputReport& output) {
  const Difference& worst = output.worst;
  return {{"reference_name", output.reference_name},
          {"candidate_name", output.candidate_name},
          {"reference_type", output.reference_type},
          {"candidate_type", output.candidate_type},
          {"equal", output.verdict() == Verdict::same},
          {"verdict", verdict_cell(output.verdict()).text},
          {"failed_runs", output.failed_runs},
          {"worst_run", output.worst_run},
          {"tolerance",
           {{"relative", output.tolerance.relative},
            {"absolute", output.tolerance.absolute},
            {"of_largest", output.tolerance.of_largest},
            {"by_slice", output.tolerance.by_slice},
            {"snr_db", number(output.tolerance.snr_db)},
            {"why", output.why_tolerance}}},
          {"elements", worst.count},
          {"compared", output.compared},
          {"not_compared", output.not_compared},
          {"mismatched", worst.mismatched},
          {"within_noise", worst.within_noise},
          {"max_absolute", number(worst.worst_absolute())},
          {"max_absolute_at", worst.max_absolute_at},
          {"max_relative", number(worst.worst_relative())},
          {"max_relative_at", worst.max_relative_at},
          {"excess", number(worst.excess)},
          {"cosine", worst.cosine ? number(*worst.cosine) : Json()},
          {"snr_db", number(output.figures.snr_db)},
          {"largest_error", number(output.figures.largest_error)},
          {"rows", output.figures.rows},
          {"same_top", output.figures.same_top},
          {"first_index", worst.first_index},
          {"incomparable", worst.incomparable},
          {"selection", cli::to_json(worst.selection)},
          {"noise_floor", cli::to_json(output.floor)},
          {"note", output.note}};
}

/// The files that were named: a .caffemodel belongs to the network before it.
struct Pair {
  ModelArguments reference;
  ModelArguments candidate;
};

Pair pair_of(const Arguments& arguments) {
  std::vector<ModelArguments> models;
  for (const std::string& file : arguments.files) {
    if (std::filesystem::path(file).extension() == ".caffemodel" && !models.empty() && models.back().weights.empty()) {
      models.back().weights = file;
    } else {
      models.push_back({.model = file, .weights = {}, .shapes = {}, .outputs = {}});
    }
  }
  const bool may_be_one = !arguments.emulate.empty();
  if (models.size() == 1 && may_be_one) models.push_back(models.front());
  if (models.size() != 2) {
    throw Error(
        fmt::format("graft verify: {} to compare; found {}, allowed are two{}, each network of Caffe with its "
                    "weights after it",
                    count_text(models.size(), "model"), fmt::join(arguments.files, ", "),
                    may_be_one ? " or one" : ", or one with --emulate"));
  }
  models[0].outputs = arguments.outputs;
  if (models[0].model == models[1].model) models[1].outputs = arguments.outputs;
  return {.reference = std::move(models[0]), .candidate = std::move(models[1])};
}

/// NAME=LOWEST..HIGHEST.
InputRanges parse_ranges(const std::vector<std::string>& texts) {
  InputRanges ranges;
  for (const std::string& text : texts) {
    const std::size_t name_end = text.rfind('=');
    const std::size_t dots = text.find("..", name_end == std::string::npos ? 0 : name_end);
    const auto number = [&](const std::string& digits) -> std::optional<double> {
      std::istringstream stream(digits);
      stream.imbue(std::locale::classic());
      double value = 0;
      const bool is_whole = stream >> value && stream.peek() == std::istringstream::traits_type::eof();
      return is_whole && std::isfinite(value) ? std::optional(value) : std::nullopt;
    };
    const bool has_parts = name_end != std::string::npos && name_end != 0 && dots != std::string::npos;
    const auto lowest = has_parts ? number(text.substr(name_end + 1, dots - name_end - 1)) : std::nullopt;
    const auto highest = has_parts ? number(text.substr(dots + 2)) : std::nullopt;
    if (!lowest || !highest || *lowest > *highest) {
      throw Error(fmt::format("--range {}: found no range; allowed is NAME=LOWEST..HIGHEST, as image=0..255", text));
    }
    const std::string name = text.substr(0, name_end);
    if (!ranges.emplace(name, InputRange{.lowest = *lowest, .highest = *highest, .why = {}}).second) {
      throw Error(fmt::format("--range {}: there is a range of '{}' already", text, name));
    }
  }
  return ranges;
}

/// Both models, and the inputs that were given for them, in the form that the reference wants.
struct Models {
  Model reference;
  Model candidate;
};

/// What a network of another format says of its inputs by itself; nothing where it cannot say that.
std::optional<Model> read_without_shapes(const ModelArguments& files) {
  try {
    return read(files, {});
  } catch (const Error& error) {
    if (error.kind() != Error::Kind::bad_input) throw;
    return std::nullopt;
  }
}

/// A network of another format often has a fixed batch where the converted one has an open one, or the other way round:
/// where no shapes are given it is read with those of the converted one.
Model read_reference(const ModelArguments& files, const Model& candidate) {
  if (!is_imported(files.model)) return read(files, {});
  InputShapes shapes;
  for (const Value* input : candidate.graph().inputs()) {
    if (input->shape) shapes.emplace(input->name, *input->shape);
  }
  try {
    return read(files, shapes);
  } catch (const Error& error) {
    if (error.kind() != Error::Kind::bad_input) throw;
    return read(files, {});  // other inputs: what it says of them itself is the better message
  }
}

/// Reads both. What was given comes back under the names of the reference and in its layout.
Models read_models(const Pair& files, VerifyOptions& options) {
  InputShapes shapes;
  for (const auto& [name, sizes] : options.shapes) shapes.emplace(name, Shape(sizes.begin(), sizes.end()));
  if (!options.data.empty()) shapes.merge(shapes_of(options.data.front()));
  if (shapes.empty()) {
    Model candidate = read(files.candidate, {});
    Model reference = read_reference(files.reference, candidate);
    return {.reference = std::move(reference), .candidate = std::move(candidate)};
  }
  std::optional<Model> reference = read_without_shapes(files.reference);
  std::optional<Model> candidate = read_without_shapes(files.candidate);
  if (!reference || !candidate) {
    return {.reference = read(files.reference, shapes), .candidate = read(files.candidate, shapes)};
  }
  const PlacedShapes placed = place_inputs(*reference, *candidate, options);
  if (is_imported(files.reference.model)) reference = read(files.reference, placed.reference);
  if (is_imported(files.candidate.model)) candidate = read(files.candidate, placed.candidate);
  return {.reference = std::move(*reference), .candidate = std::move(*candidate)};
}

Json ranges_json(const InputRanges& ranges) {
  Json json = Json::object();
  for (const auto& [name, range] : ranges) {
    json[name] = {{"lowest", range.lowest}, {"highest", range.highest}, {"why", range.why}};
  }
  return json;
}

void say_ranges(const Console& console, const InputRanges& ranges) {
  for (const auto& [name, range] : ranges) {
    console.say(console.paint(fmt::format("made-up '{}' is {:g} to {:g}{}", name, range.lowest, range.highest,
                                          range.why.empty() ? "" : ", since " + range.why),
                              Color::faint));
  }
}

void say_sizes(const Console& console, const std::string& why) {
  if (!why.empty()) console.say(console.paint(why, Color::faint));
}

/// Of whole models.
std::string result_text(Verdict verdict) {
  switch (verdict) {
    case Verdict::same: return "the same";
    case Verdict::different: return "not the same";
    case Verdict::nothing_compared: return "not compared";
  }
  return "";
}

report::Report new_page(const Pair& files, const std::string& result, std::size_t runs,
                        const std::vector<std::string>& inputs) {
  report::Report page = new_model_report("verify", files.candidate.model);
  page.summary.push_back({"reference", files.reference.model});
  page.summary.push_back({"result", fmt::format("{} on {}", result, count_text(runs, "run"))});
  for (const std::string& input : inputs) page.summary.push_back({"input", input});
  return page;
}

void say_files(const Console& console, const Pair& files) {
  console.say(console.paint(fmt::format("reference {}, candidate {}", files.reference.model, files.candidate.model),
                            Color::faint));
}

/// What verify_models and compare_layers have in common.
template <class Options>
Options options_of(const Arguments& arguments) {
  Options options;
  if (arguments.seeds != 0) options.seeds = arguments.seeds;
  options.shapes = parse_shapes("--input", arguments.inputs, false);
  if (!arguments.data.empty()) options.data.push_back(read_tensors("--data", arguments.data));
  if (arguments.relative_option->count() != 0) options.relative = arguments.relative;
  if (arguments.absolute_option->count() != 0) options.absolute = arguments.absolute;
  if (arguments.snr_option->count() != 0) options.snr_db = arguments.snr;
  if (arguments.kernels == "own") options.candidate_kernels = runtime::OperatorKernels::own;
  return options;
}

/// Those that make a reduced case show what the whole did.
std::string repeated_options(const Arguments& arguments) {
  std::string text;
  if (arguments.relative_option->count() != 0) text += fmt::format(" --rtol {}", arguments.relative);
  if (arguments.absolute_option->count() != 0) text += fmt::format(" --atol {}", arguments.absolute);
  if (arguments.snr_option->count() != 0) text += fmt::format(" --snr {}", arguments.snr);
  if (arguments.kernels == "own") text += " --kernels own";
  return text;
}

/// Writes what --reduce asks for, if there is anything to write.
std::optional<ReducedFiles> reduce(const Arguments& arguments, const LayerReport& report) {
  if (arguments.reduce.empty()) return std::nullopt;
  if (report.failure && !report.failure->nodes.empty()) {
    return write_failure(arguments.reduce, *report.failure, arguments.kernels == "own" ? " --kernels own" : "");
  }
  if (!report.first) return std::nullopt;
  return write_reduced(arguments.reduce, report.first->reduced, repeated_options(arguments));
}

/// Where hardly anything would be called a difference.
void warn_of_noise(const Console& console, const Arguments& arguments, const std::vector<ComparedTensor>& tensors) {
  const auto found = std::find_if(tensors.begin(), tensors.end(), [](const ComparedTensor& tensor) {
    return tensor.floor && tensor.floor->says_little();
  });
  if (found == tensors.end()) return;
  const bool made_up = arguments.data.empty();
  console.warn(fmt::format(
      "'{}' says little: {}; {}", found->reference, found->floor->to_string(),
      made_up ? "synthetic inputs are badly conditioned here: give real ones with --data, or their numbers with --range"
              : "the given data are badly conditioned for this network"));
}

/// Layers inside were calibrated for numbers that synthetic inputs, of the right range at most, do not give them.
void warn_of_calibration(const Console& console, const Arguments& arguments, const Model& reference,
                         const Model& candidate, Verdict verdict) {
  if (verdict != Verdict::different || !arguments.data.empty() || !quantizes(candidate) || quantizes(reference)) return;
  console.warn(
      "the candidate was calibrated for real inputs, and these are synthetic: give real ones with --data before the "
      "difference is held against it");
}

/// Of a tensor that is lost in noise warn_of_noise has the figures.
template <class Compared>
void warn_of_nothing_compared(const Console& console, const Arguments& arguments, const Compared& output,
                              const std::string& name) {
  if (!output.not_compared.empty()) {
    console.warn(fmt::format(
        "nothing was compared of output '{}': {}; to compare it, make these numbers an input of both models", name,
        output.not_compared));
    return;
  }
  const char* why = output.is_lost_in_noise() ? "they differ, and rounding alone changes the reference by as much"
                                              : "in no run has it an element that is a finite number in both models";
  console.warn(fmt::format(
      "nothing was compared of output '{}': {}; {}", name, why,
      arguments.data.empty() ? "give real inputs with --data, or their numbers with --range" : "give other data"));
}

Exit verify_layers(const Console& console, const Arguments& arguments, const Pair& files, const Model& reference,
                   const Model& candidate, LayerOptions options) {
  Progress progress(console);
  options.progress = [&](const std::string& what, std::size_t done, std::size_t total) {
    progress.update(what, total == 0 ? 1 : static_cast<double>(done) / static_cast<double>(total));
  };
  const LayerReport result = compare_layers(runtime::default_engine(), reference, candidate, options);
  for (const auto& [name, range] : result.narrowed) options.ranges.insert_or_assign(name, range);
  progress.clear();
  say_files(console, files);
  say_ranges(console, options.ranges);
  say_sizes(console, result.why_sizes);
  say(console, result);
  warn_of_noise(console, arguments, tensors_of(result));
  warn_of_calibration(console, arguments, reference, candidate, result.verdict());
  for (const LayerComparison& layer : result.layers) {
    if (layer.verdict() == Verdict::nothing_compared)
      warn_of_nothing_compared(console, arguments, layer, layer.reference);
  }
  const std::string hidden = hidden_difference_text(result);
  if (!hidden.empty()) console.warn(hidden);
  Json json = cli::to_json(result);
  json["reference"] = files.reference.model;
  json["candidate"] = files.candidate.model;
  json["ranges"] = ranges_json(options.ranges);
  json["why_sizes"] = result.why_sizes;
  json["reduced"] = nullptr;
  json["emulated"] = arguments.emulate.empty() ? Json() : Json(arguments.emulate);
  if (const auto written = reduce(arguments, result)) {
    const std::vector<std::string> names = written->names();
    console.say(fmt::format("wrote {}; to see it again:\n  {}", fmt::join(names, ", "), written->command));
    json["reduced"] = {{"candidate", written->candidate},
                       {"reference", written->reference},
                       {"inputs", written->inputs},
                       {"command", written->command}};
  } else if (!arguments.reduce.empty()) {
    console.say(fmt::format("{} was not written: there is no node to reduce it to", arguments.reduce));
  }
  if (!arguments.report.empty()) {
    report::Report page = new_page(files, result_text(result.verdict()), result.runs, result.inputs);
    if (result.first) page.summary.push_back({"first divergence", first_divergence_text(result)});
    if (!hidden.empty()) page.summary.push_back({"inside", hidden});
    add_comparison(page, candidate, tensors_of(result), result.problems);
    write_report(console, page, arguments.report);
  }
  console.result(json);
  return result.verdict() == Verdict::same ? Exit::done : Exit::answer_is_no;
}

Exit verify(const Console& console, const Arguments& arguments) {
  std::vector<NamedFile> written = report_files(arguments.report);
  if (!arguments.reduce.empty()) {
    for (const std::string& file : reduced_files(arguments.reduce).names()) written.push_back({"--reduce", file});
  }
  std::vector<NamedFile> read = tensor_files("--data", arguments.data);
  for (const std::string& file : arguments.files) read.push_back({"a model that is compared", file});
  check_files_apart(written, read);
  check_report(arguments.report);
  const bool layers = arguments.layers || !arguments.reduce.empty() || !arguments.emulate.empty();
  auto options = options_of<VerifyOptions>(arguments);
  for (const TensorMap& data : options.data) warn_of_nan(console, "--data", data);
  options.across_formats = true;
  options.may_be_narrower = true;
  const Pair files = pair_of(arguments);
  const auto [reference, candidate] = read_models(files, options);
  if (!arguments.data.empty() && !arguments.ranges.empty()) {
    throw Error("--range says how inputs are made up; with --data none are\nLeave one of both out");
  }
  options.ranges = parse_ranges(arguments.ranges);
  complete_inputs(reference, candidate, options);
  if (layers) {
    auto layer_options = options_of<LayerOptions>(arguments);
    layer_options.shapes = options.shapes;
    layer_options.data = options.data;
    layer_options.ranges = options.ranges;
    layer_options.emulated = parse_precision(arguments.emulate);
    // The scales come from the first run; what they do to other numbers shows in the second.
    if (layer_options.emulated == Precision::int8 && arguments.seeds == 0) layer_options.seeds = 2;
    return verify_layers(console, arguments, files, reference, candidate, std::move(layer_options));
  }
  Progress progress(console);
  options.progress = [&](std::size_t done, std::size_t total) {
    progress.update(fmt::format("run {} of {}", done, total),
                    total == 0 ? 1 : static_cast<double>(done) / static_cast<double>(total));
  };
  const VerifyReport report = verify_models(runtime::default_engine(), reference, candidate, options);
  for (const auto& [name, range] : report.narrowed) options.ranges.insert_or_assign(name, range);
  progress.clear();

  Table table;
  Json outputs = Json::array();
  for (const OutputReport& output : report.outputs) {
    const std::string name = output.reference_name == output.candidate_name
                                 ? output.reference_name
                                 : fmt::format("{} / {}", output.reference_name, output.candidate_name);
    const bool was_run = report.runs > 0;
    const bool is_random = !output.not_compared.empty();
    const bool judged_as_a_whole = output.tolerance.snr_db || !output.why_tolerance.empty();
    const bool has_figures = was_run && judged_as_a_whole && output.figures.is_real &&
                             output.worst.incomparable.empty() &&
                             (output.figures.largest_error != 0 || output.figures.not_finite != 0);
    // The figures are those of all runs, and the difference that of the worst.
    const bool says_runs = has_figures && report.runs > 1;
    const std::string of_run = says_runs ? fmt::format("run {}: ", output.worst_run + 1) : "";
    table.add({!was_run ? Cell("not run", Color::faint) : verdict_cell(output.verdict()),
               {name, Color::strong},
               output.reference_type,
               !was_run                      ? ""
               : is_random && output.equal() ? output.not_compared
                                             : of_run + output.worst.to_string()});
    if (!output.note.empty()) table.add({"", "", "", {output.note, Color::faint}});
    if (has_figures) {
      const std::string of_all = says_runs ? fmt::format("all {} runs: ", report.runs) : "";
      table.add({"", "", "", of_all + quality_text(output.figures)});
    }
    if (was_run && !is_random && (!output.equal() || console.verbose || !output.why_tolerance.empty()))
      table.add({"", "", "", {allowed_text(output.tolerance, output.why_tolerance), Color::faint}});
    if (was_run && output.floor) table.add({"", "", "", {output.floor->to_string(), Color::faint}});
    outputs.push_back(to_json(output));
  }
  for (const std::string& problem : report.problems) table.add({Cell("differs", Color::bad), problem});

  const bool equal = report.verdict() == Verdict::same;
  const std::string result = result_text(report.verdict());
  const std::string made_up = arguments.data.empty() ? "synthetic inputs" : "the given data";
  std::string inputs;
  for (const std::string& input : report.inputs) inputs += (inputs.empty() ? "" : ", ") + input;
  console.say(fmt::format("{}: {} on {} ({})", console.paint(result, verdict_cell(report.verdict()).color),
                          count_text(report.runs, "run"), made_up, inputs));
  say_files(console, files);
  say_ranges(console, options.ranges);
  say_sizes(console, report.why_sizes);
  console.say(table);
  const std::vector<ComparedTensor> tensors = tensors_of(report);
  warn_of_noise(console, arguments, tensors);
  warn_of_calibration(console, arguments, reference, candidate, report.verdict());
  for (const OutputReport& output : report.outputs) {
    if (report.runs > 0 && output.verdict() == Verdict::nothing_compared) {
      warn_of_nothing_compared(console, arguments, output, output.reference_name);
    }
  }
  if (!arguments.report.empty()) {
    report::Report page = new_page(files, result, report.runs, report.inputs);
    page.summary.push_back({"compared", "the outputs; with --layers every tensor"});
    add_comparison(page, candidate, tensors, report.problems);
    write_report(console, page, arguments.report);
  }
  console.result({{"schema", "graft.verify"},
                  {"version", 1},
                  {"equal", equal},
                  {"verdict", result},
                  {"reference", files.reference.model},
                  {"candidate", files.candidate.model},
                  {"runs", report.runs},
                  {"inputs", report.inputs},
                  {"ranges", ranges_json(options.ranges)},
                  {"why_sizes", report.why_sizes},
                  {"problems", report.problems},
                  {"outputs", outputs}});
  return equal ? Exit::done : Exit::answer_is_no;
}

}  // namespace

void add_verify(Program& program) {
  const auto arguments = std::make_shared<Arguments>();
  CLI::App* command = program.add_command(
      "verify", "runs two models on the CPU on the same inputs and compares their outputs; exit code 1 if they differ",
      "graft verify digits.onnx digits.graft.onnx --data image=digits_test.npz:images",
      [arguments](const Console& c) { return verify(c, *arguments); });
  command
      ->add_option(
          "MODELS", arguments->files,
          "the model that is right, then the one to judge, each of any format; a Caffe network (.prototxt) has "
          "its .caffemodel after it. One model with --emulate, judged against itself")
      ->option_text("REFERENCE [CANDIDATE]")
      ->required()
      ->expected(1, 4);
  command
      ->add_option("--keep-output", arguments->outputs,
                   "tensor of a TensorFlow or Caffe reference that becomes an output, as for `graft convert`; once for "
                   "each")
      ->type_name("TENSOR");
  command
      ->add_option(
          "--data", arguments->data,
          "inputs to run with: NAME=FILE.npy, NAME=FILE.npz:ARRAY or FILE.npz; a model of a fixed batch runs once for "
          "each so many samples; without it inputs are made up")
      ->type_name("TENSOR");
  command->add_option("--input", arguments->inputs, "shape of a synthetic input, NAME:1x3x224x224; once for each")
      ->type_name("SHAPE");
  command
      ->add_option("--range", arguments->ranges,
                   "numbers of a synthetic input, NAME=0..255; once for each. Without it what the first layers show: a "
                   "division by 255, a subtraction of means, the rows of a table; otherwise they are normally "
                   "distributed, and integers are 0 to 3")
      ->type_name("RANGE");
  command
      ->add_option("--seeds", arguments->seeds,
                   "runs with synthetic inputs (3; 1 with --layers, 2 with --emulate int8)")
      ->type_name("N")
      ->check(CLI::Range(1, 10000));
  command->add_flag("--layers", arguments->layers,
                    "compare every tensor that both models have, and find the node where they part");
  command
      ->add_option(
          "--reduce", arguments->reduce,
          "write the nodes where the models part as a model of their own, with the same nodes of the reference "
          "and their inputs beside it; means --layers")
      ->type_name("FILE.onnx");
  command
      ->add_option("--emulate", arguments->emulate,
                   "what the candidate would give in this type, tensor by tensor: f16, bf16 or int8; means --layers")
      ->type_name("TYPE")
      ->check(CLI::IsMember({"f16", "bf16", "int8"}));
  arguments->relative_option =
      command
          ->add_option("--rtol", arguments->relative,
                       "relative tolerance (what the type's rounding explains, or what it makes of the "
                       "reference itself)")
          ->type_name("X")
          ->check(at_least(0, "a number from 0"));
  arguments->absolute_option = command
                                   ->add_option("--atol", arguments->absolute,
                                                "absolute tolerance (0; 1 for int8 and uint8 that were quantized)")
                                   ->type_name("X")
                                   ->check(at_least(0, "a number from 0"));
  arguments->snr_option =
      command
          ->add_option("--snr", arguments->snr,
                       "least signal to noise ratio of an output in dB, in place of a tolerance of each element (20 "
                       "where the candidate was quantized to 8 bits)")
          ->type_name("DB")
          ->check(at_least(-1000, "a number of decibels"));
  add_report_option(*command, arguments->report, "the candidate, colored by the error of its tensors");
  program.add_operators_option(*command);
  command
      ->add_option("--kernels", arguments->kernels,
                   "how the candidate's Graft operators are computed: functions or own (functions)")
      ->type_name("WHICH")
      ->check(CLI::IsMember({"functions", "own"}));
}

}  // namespace graft::cli

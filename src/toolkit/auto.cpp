// `run_auto`: calls the functions of the steps one after the other, and checks the engine.
#include "graft/toolkit/auto.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <memory>
#include <string_view>
#include <system_error>

#include "graft/setting.hpp"
#include "graft/toolkit/commands.hpp"
#include "graft/toolkit/files.hpp"
#include "graft/toolkit/inspect.hpp"
#include "toolkit/access.hpp"
#include "toolkit/build_arguments.hpp"
#include "toolkit/data.hpp"
#include "toolkit/engine_driver.hpp"
#include "toolkit/gpu_targets.hpp"
#include "toolkit/plugin_targets.hpp"
#include "toolkit/quantize.hpp"
#include "toolkit/tensors.hpp"

namespace graft::toolkit {
namespace {

namespace fs = std::filesystem;

constexpr auto converted_name = "converted.onnx";
constexpr auto quantized_name = "quantized.onnx";
constexpr auto data_name = "data.npz";

/// The name of a step of `auto`, and the fraction of the whole progress (0 to 1) at which it begins.
struct StepPlace {
  const char* name;
  double begin;
};
constexpr std::array<StepPlace, 4> step_places{{{"convert", 0}, {"verify", 0.3}, {"quantize", 0.5}, {"build", 0.75}}};
enum StepIndex : std::size_t { convert_step, verify_step, quantize_step, build_step };

/// Returns the folder for the other files of an engine. It has the path of the engine with the extension .graft, for
/// example "digits.graft" for "digits.engine".
fs::path folder_beside(const fs::path& engine) {
  fs::path folder = engine;
  return folder.replace_extension(".graft");
}

/// Returns whether the options already have a range for the input that is named in `range`, a string of the form
/// NAME=MIN..OPT..MAX.
bool has_range(const BuildOptions& options, const std::string& range) {
  const std::string name = range.substr(0, range.rfind('='));
  // The options of the engine driver are OPTION=NAME=MIN..OPT..MAX, and a profile has several, separated by commas.
  return options.shapes.contains(name) || std::ranges::any_of(options.driver_options, [&](const std::string& option) {
           return option.find(fmt::format("={}=", name)) != std::string::npos ||
                  option.find(fmt::format(",{}=", name)) != std::string::npos;
         });
}

/// Throws MissingShapes if inputs of the model need ranges that the options do not have.
void check_ranges(const Model& model, const BuildOptions& options) {
  if (!options.profiles.empty()) return;
  std::vector<std::string> missing = suggest_ranges(model).ranges;
  std::erase_if(missing, [&](const std::string& range) { return has_range(options, range); });
  if (missing.empty()) return;
  std::vector<std::string> names;
  std::string example;
  for (const std::string& range : missing) {
    names.push_back(fmt::format("'{}'", range.substr(0, range.rfind('='))));
    example += fmt::format(" {} {}", setting_name(Setting::shape_ranges), range);
  }
  throw MissingShapes(
      fmt::format("{}: the size{} of {} {} dynamic, and an engine is built for a minimum, an optimum and a maximum "
                  "size\nSet them with {}, for example{}",
                  model.source(), names.size() == 1 ? "" : "s", fmt::join(names, ", "),
                  names.size() == 1 ? "is" : "are", setting_name(Setting::shape_ranges), example),
      std::move(missing));
}

/// Returns whether the engine may contain plugins. This is the case if a node runs as a plugin, or if a node has an
/// ONNX operator that becomes a plugin with releases of TensorRT that do not support the operator.
bool may_have_plugins(const ConvertReport& report) {
  return find_build_needs(report.model).may_need_plugin ||
         std::ranges::any_of(report.nodes,
                             [](const NodeSupport& node) { return node.support == report::Support::plugin; });
}

EngineCheck check_targets(const BuildReport& build) {
  const std::size_t plugins = build.network.plugins.size();
  EngineCheck check{.name = "targets", .passed = true, .found = {}};
  check.found = plugins == 0 ? "the engine needs no plugin library"
                             : fmt::format("the plugins in the engine have code for all its GPUs: {} of {} layers",
                                           plugins, build.layer_count());
  return check;
}

EngineCheck check_values(const BuildReport& build) {
  EngineCheck check{.name = "values", .passed = build.computed_wrongly.empty(), .found = {}};
  std::vector<std::string> faults;
  for (const NodeSupport& node : build.computed_wrongly) {
    faults.push_back(fmt::format("{}\n{}", build.describe_fault(node), node.advice));
  }
  check.found = check.passed.value() ? fmt::format("{} is not known to compute a node wrongly", build.tensorrt.title())
                                     : fmt::format("{}", fmt::join(faults, "\n"));
  return check;
}

bool has_type(const report::EngineLayer& kernel, const std::string& type) {
  return std::ranges::count(kernel.inputs, type, &report::EngineTensor::type) != 0 ||
         std::ranges::count(kernel.outputs, type, &report::EngineTensor::type) != 0;
}

/// Returns one line for each node that is f16 or bf16 in the quantized model although no kernel that computes it reads
/// or writes this type.
std::vector<std::string> find_wider_kernels(const report::EngineLayers& engine, const QuantizeReport& quantized) {
  const std::string type(to_string(quantized.precision));
  std::vector<std::string> lines;
  for (const QuantizedNode& node : quantized.nodes) {
    if (node.role != report::NodeRole::computes || node.type != type) continue;
    std::vector<const report::EngineLayer*> kernels;
    for (const report::EngineLayer& kernel : engine.layers) {
      if (std::ranges::count(kernel.nodes, node.node.name) != 0) kernels.push_back(&kernel);
    }
    const auto is_narrow = [&](const report::EngineLayer* kernel) { return has_type(*kernel, type); };
    if (kernels.empty() || std::ranges::any_of(kernels, is_narrow)) continue;
    lines.push_back(fmt::format("{} is {} in the model, and the kernel '{}' does not read or write this type",
                                describe(node.node), type, kernels.front()->name));
  }
  return lines;
}

/// Checks whether the kernels read the types that the quantized model requests, and returns the result. Without
/// information on the kernels, the result says that the check was not possible.
EngineCheck check_kernel_types(const BuildReport& build, const std::optional<QuantizeReport>& quantized) {
  EngineCheck check{.name = "types"};
  if (!build.layers || !build.layers->unknown.empty()) {
    check.found = build.layers ? build.layers->unknown : "the kernels were not listed";
    return check;
  }
  const auto text_of = [](const report::EngineLayers::Counts& reads, std::string_view kernel) {
    std::vector<std::string> counts;
    for (const auto& [type, count] : reads) {
      counts.push_back(fmt::format("{} {}{} {}", count, kernel, count == 1 ? " reads" : "s read", type));
    }
    return fmt::format("{}", fmt::join(counts, ", "));
  };
  const std::string products = text_of(build.layers->matrix_reads(), "convolution or matrix multiplication kernel");
  const std::string all = text_of(build.layers->reads(), "kernel");
  check.found = all.empty() ? "no kernel reads a tensor"
                : products.empty()
                    ? all
                    : fmt::format("{}; of all {} kernels, {}", products, build.layers->layers.size(), all);
  std::vector<std::string> wider;
  if (quantized && quantized->has_16_bits()) {
    wider = find_wider_kernels(*build.layers, *quantized);
  } else if (quantized) {
    for (const report::FloatIsland& island : build.layers->islands) {
      wider.push_back(fmt::format("{} was quantized and reads {}, in the kernel '{}'", describe(island.node),
                                  island.type, island.layer));
    }
  }
  for (const std::string& line : wider) check.found += "\n" + line;
  check.passed = wider.empty();
  return check;
}

class AutoRun {
 public:
  AutoRun(const fs::path& model, const fs::path& engine, const AutoOptions& options)
      : options_(options), data_(options.data_files), tensors_(options.data), build_(options.build) {
    report_.model = model;
    report_.engine = engine;
    report_.folder = options.folder.empty() ? folder_beside(engine) : options.folder;
    if (options.quantize) report_.precision = options.quantize->precision;
    for (const StepPlace& place : step_places) report_.steps.push_back({.name = place.name});
    converted_ = report_.folder / converted_name;
    build_.targets = parse_targets(build_.targets);
  }

  AutoReport run() {
    check_files();
    check_data();
    choose_tensorrt();
    create_folder();
    try {
      run_steps();
    } catch (...) {
      std::error_code ignored;  // where the folder has files, it stays
      if (is_new_folder_) fs::remove(report_.folder, ignored);
      throw;
    }
    if (options_.watch.progress) options_.watch.progress(1, "done");
    return std::move(report_);
  }

 private:
  AutoStep& step(StepIndex index) { return report_.steps[index]; }
  [[nodiscard]] fs::path last_model() const { return options_.quantize ? report_.folder / quantized_name : converted_; }

  /// Throws Error if the engine or a file in the folder would overwrite an input.
  void check_files() const {
    std::vector<fs::path> read{report_.model, options_.import.weights, options_.convert.rules};
    std::ranges::move(data_paths(options_.data_files), std::back_inserter(read));
    for (const fs::path& library : build_.plugin_libraries) read.push_back(library);
    for (const fs::path& written :
         {report_.engine, converted_, report_.folder / quantized_name, report_.folder / data_name,
          report_.folder / "report.html", report_.folder / "report.json"}) {
      for (const fs::path& file : read) {
        std::error_code problem;
        const bool is_same = !file.empty() && fs::equivalent(file, written, problem);
        if (!is_same) continue;
        throw Error(
            fmt::format("{}: this file is read, and would be overwritten\nWrite to another file, or choose the "
                        "folder of the results with {}",
                        written.string(), setting_name(Setting::auto_folder)));
      }
    }
    check_writable(report_.engine);
  }

  /// Throws Error if the data or the options of the quantization are invalid, so that such errors appear before the
  /// slow steps. Reads only the headers of the data files.
  void check_data() {
    const GivenData given{
        .files = options_.data_files,
        .tensors = to_internal(views_of(options_.data), std::string(setting_name(Setting::auto_data))),
        .setting = Setting::auto_data};
    check_kinds_of_data(given.files, !given.tensors.empty(), given.setting);
    if (!given.empty()) {
      ImportOptions import = options_.import;
      import.watch.cancel = options_.watch.cancel;
      data::Inputs inputs = data::inputs_of(model_of(load(report_.model, import, given.files)));
      inputs.is_comparison = true;  // the data may have the layout of the converted network
      (void)open_columns(given, inputs);
      if (const auto unnamed = tensors_.extract(""); !unnamed.empty()) {
        tensors_.emplace(inputs.list.front().name(), unnamed.mapped());
      }
    }
    data_ = options_.data_files;
    if (!options_.data.empty()) data_.sources = {(report_.folder / data_name).string()};
    if (!options_.quantize) return;
    QuantizeOptions quantize = quantize_options();
    quantize.output.clear();
    check_options(quantize);
  }

  /// Determines the GPUs for which the engine is built, and sets the targets and the reason in the report. If no
  /// targets are set and no GPU is present, leaves the decision to choose_targets_of_plugins(). Throws the errors of
  /// the engine driver, for example if no TensorRT is installed.
  void choose_tensorrt() {
    const auto answer = ask_choice();
    const bool is_rtx = answer.value("flavor", "") == "rtx";
    const bool has_gpu = answer.value("gpu_present", false);
    const std::string missing = answer.value("why_no_gpu", "this machine has no GPU");
    const std::string_view option = setting_name(Setting::targets);
    if (!is_rtx && !has_gpu) {
      throw Error(
          Error::Kind::missing_tool,
          fmt::format("{} {}: the full TensorRT builds an engine only on a GPU, and {}\nSet it to rtx: "
                      "TensorRT-RTX builds without a GPU (pip install tensorrt-rtx-cu13). Or run the command on "
                      "the machine with the GPU",
                      setting_name(Setting::tensorrt), build_.tensorrt, missing));
    }
    if (!build_.targets.empty()) {
      report_.why_targets = fmt::format("{} names {}", option, build_.targets.size() == 1 ? "it" : "them");
    } else if (has_gpu) {
      build_.targets = {"current"};
      report_.why_targets = "it is the GPU of this machine";
    } else {
      chooses_for_plugins_ = true;
      why_no_gpu_ = missing;
      report_.why_targets = fmt::format("{}; {} builds for the GPUs that it names", missing, option);
    }
    report_.targets = build_.targets;
  }

  [[nodiscard]] nlohmann::json ask_choice() const {
    std::vector<std::string> question = choice_arguments(build_);
    question.insert(question.begin(), "choose");
    return ask_engine_driver(question, {}, {}, {.progress = {}, .cancel = options_.watch.cancel}).result;
  }

  void create_folder() {
    std::error_code problem;
    is_new_folder_ = fs::create_directory(report_.folder, problem);
    if (problem || !fs::is_directory(report_.folder, problem)) {
      throw Error(fmt::format("{}: this folder cannot be created: {}\nName another one with {}",
                              report_.folder.string(), problem ? problem.message() : "it is a file",
                              setting_name(Setting::auto_folder)));
    }
    check_writable(converted_);
    if (!options_.data.empty()) {
      write_npz(report_.folder / data_name, tensors_);
      report_.files.emplace_back(data_name);
    }
    // A report describes the files of its own run.
    for (const char* name : {"report.html", "report.json"}) {
      fs::remove(report_.folder / name, problem);
    }
  }

  void run_steps() {
    if (!run(convert_step, [this] { return convert(); })) return finish_commands();
    check_ranges(report_.convert->model, build_);
    choose_targets_of_plugins();
    if (!have_plugins_code()) return;
    if (const std::string why = why_not_verified(); !why.empty()) {
      skip(verify_step, why);
    } else if (!run(verify_step, [this] { return verify(); })) {
      return finish_commands();
    }
    if (!options_.quantize) {
      skip(quantize_step, fmt::format("the network keeps its types, because no {} was requested",
                                      setting_name(Setting::auto_precision)));
    } else if (!run(quantize_step, [this] { return quantize(); })) {
      return finish_commands();
    }
    if (run(build_step, [this] { return build(); })) {
      report_.checks = {check_targets(*report_.build), check_values(*report_.build),
                        check_kernel_types(*report_.build, report_.quantize)};
    }
  }

  /// Sets the commands of the steps that were not reached, with which the user can continue.
  void finish_commands() {
    for (const StepIndex index : {verify_step, quantize_step, build_step}) {
      if (step(index).state != StepState::not_reached || (index == quantize_step && !options_.quantize)) continue;
      if (report_.convert) step(index).command = command_of(index);
    }
  }

  [[nodiscard]] std::string command_of(StepIndex index) const {
    switch (index) {
      case convert_step: return convert_command(report_.model, options_.import, convert_options()) + library_options();
      case verify_step: return verify_command(reference(), converted_, verify_options());
      case quantize_step: return quantize_command(converted_, quantize_options());
      case build_step: return build_command(report_.convert->model, report_.engine, build_options());
    }
    return "";
  }

  /// Runs a step by calling `function`, and returns whether its result is good: the value that `function` returns, or
  /// false if it throws an Error of kind answer_is_no (exit code 1). Other exceptions are thrown to the caller.
  template <class Function>
  bool run(StepIndex index, const Function& function) {
    AutoStep& current = step(index);
    current.command = command_of(index);
    if (options_.on_step) options_.on_step(report_, current);
    const auto start = std::chrono::steady_clock::now();
    bool is_good = false;
    try {
      is_good = function();
    } catch (const Cancelled&) {
      throw;
    } catch (const Error& error) {
      if (error.kind() != Error::Kind::answer_is_no) throw;
      current.why = error.what();
    }
    current.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    current.state = is_good ? StepState::done : StepState::negative;
    if (options_.on_step) options_.on_step(report_, current);
    return is_good;
  }

  void skip(StepIndex index, std::string why) {
    AutoStep& skipped = step(index);
    skipped.state = StepState::not_needed;
    skipped.why = std::move(why);
    if (options_.on_step) options_.on_step(report_, skipped);
  }

  /// Returns a watch that reports the progress of a step as a part of the whole work.
  [[nodiscard]] Watch watch_of(StepIndex index) const {
    const double begin = step_places[index].begin;
    const double end = index + 1 < step_places.size() ? step_places[index + 1].begin : 1;
    Watch watch{.progress = {}, .cancel = options_.watch.cancel};
    if (!options_.watch.progress) return watch;
    watch.progress = [this, index, begin, end](double fraction, std::string_view text) {
      if (fraction >= 1) return;  // on_step is called, and then the next step begins
      options_.watch.progress(begin + (end - begin) * fraction, fmt::format("{}: {}", step_places[index].name, text));
    };
    return watch;
  }

  [[nodiscard]] ConvertOptions convert_options() const {
    ConvertOptions options = options_.convert;
    options.check = false;
    options.output = converted_;
    options.watch = watch_of(convert_step);
    return options;
  }

  bool convert() {
    const ConvertOptions options = convert_options();
    report_.convert = toolkit::convert(report_.model, options_.import, options);
    report_.files.emplace_back(converted_name);
    if (report_.convert->data_file) report_.files.push_back(report_.convert->data_file->filename().string());
    if (!report_.convert->are_rules_done()) return false;
    // Where the rules say that nodes do not run, TensorRT decides before minutes of comparison and calibration.
    if (report_.convert->runs().value_or(true)) return true;
    InspectOptions parse;
    parse.judge = Judge::parser;
    parse.targets = build_.targets;
    parse.plugin_libraries = build_.plugin_libraries;
    parse.tensorrt = build_.tensorrt;
    parse.plugin_override = build_.plugin_override;
    parse.watch.cancel = options_.watch.cancel;
    report_.convert->nodes = inspect(report_.convert->model, parse).nodes;
    return report_.convert->runs().value_or(true);
  }

  /// Changes the GPUs for which the engine is built if TensorRT-RTX would build for its default GPUs, the network may
  /// have plugins, and the plugin library has no code for some of these GPUs. Uses the GPUs for which the library has
  /// code instead, and sets the reason in the report.
  void choose_targets_of_plugins() {
    const std::vector<std::string>& targets = report_.convert->targets_of_plugins;
    if (!chooses_for_plugins_ || targets.empty() || !build_.plugins || !may_have_plugins(*report_.convert)) return;
    build_.targets = targets;
    report_.targets = targets;
    report_.why_targets =
        fmt::format("{}, and the plugins in the network have code only for {}; {} names other GPUs", why_no_gpu_,
                    targets.size() == 1 ? "this GPU" : "these GPUs", setting_name(Setting::targets));
  }

  /// Returns whether the plugin library has code for all targets of an engine with plugins. If it has not, sets the
  /// state of the build step to `negative`, so that the slow comparison and calibration before the build are not run.
  bool have_plugins_code() {
    AutoStep& build = step(build_step);
    BuildOptions options = build_options();
    options.model_file = converted_;
    try {
      check_plugin_targets(report_.convert->model, report_.engine, options);
      return true;
    } catch (const Error& error) {
      if (error.kind() != Error::Kind::answer_is_no) throw;
      build.why = error.what();
    }
    build.state = StepState::negative;
    if (options_.on_step) options_.on_step(report_, build);
    return false;
  }

  [[nodiscard]] std::string why_not_verified() const {
    const ConvertReport& convert = *report_.convert;
    if (!options_.convert.rules.empty()) return "rules may change what the network computes";
    if (convert.rewrites.empty() && convert.origin.format.empty()) {
      return "the conversion rewrote nothing, so that both models are the same";
    }
    return "";
  }

  [[nodiscard]] ModelFiles reference() const {
    return {.model = report_.model, .weights = options_.import.weights, .outputs = options_.import.outputs};
  }

  [[nodiscard]] VerifyOptions verify_options() const {
    constexpr std::int64_t most_files = 64;
    VerifyOptions options = options_.verify;
    options.data_files = data_;
    const bool has_folder = std::ranges::any_of(
        data_.sources, [](const std::string& source) { return data::is_folder(data::parse_source(source).file); });
    if (has_folder && options.data_files.samples == 0) options.data_files.samples = most_files;
    options.watch = watch_of(verify_step);
    return options;
  }

  void add_note(const std::string& note) {
    if (std::ranges::find(report_.data_notes, note) != report_.data_notes.end()) return;
    report_.data_notes.push_back(note);
    if (options_.on_note) options_.on_note(note);
  }

  bool verify() {
    const VerifyOptions options = verify_options();
    const ModelPair models = load_pair(reference(), {.model = converted_}, options);
    report_.verify = toolkit::verify(models.reference, models.candidate, options);
    std::ranges::for_each(report_.verify->data_notes, [this](const std::string& note) { add_note(note); });
    return report_.verify->verdict() == Verdict::same;
  }

  [[nodiscard]] QuantizeOptions quantize_options() const {
    QuantizeOptions options = *options_.quantize;
    options.data_files = data_;
    if (!report::has_8_bits(options.precision)) options.data_files.labels.clear();  // Only `verify` reads them then.
    options.output = report_.folder / quantized_name;
    options.watch = watch_of(quantize_step);
    return options;
  }

  bool quantize() {
    QuantizeOptions options = quantize_options();
    options.on_note = [this](const std::string& note) { add_note(note); };
    report_.quantize = toolkit::quantize(converted_, options);
    report_.files.emplace_back(quantized_name);
    if (const auto& data = report_.quantize->external_data) report_.files.push_back(data->filename().string());
    return report_.quantize->met();
  }

  [[nodiscard]] BuildOptions build_options() const {
    BuildOptions options = build_;
    options.layers = true;
    options.model_file = last_model();
    options.on_log = options_.on_log;
    options.watch = watch_of(build_step);
    return options;
  }

  bool build() {
    ImportOptions import;
    import.watch.cancel = options_.watch.cancel;
    const Model model = load(last_model(), import);
    report_.build = toolkit::build(model, report_.engine, build_options());
    return true;
  }

  const AutoOptions& options_;
  DataFiles data_;   ///< The data of the options, or the file to which tensors in memory are written.
  Tensors tensors_;  ///< The tensors in memory, by the names of the inputs.
  BuildOptions build_;
  fs::path converted_;
  bool is_new_folder_ = false;
  bool chooses_for_plugins_ = false;
  std::string why_no_gpu_;
  AutoReport report_;
};

}  // namespace

AutoReport run_auto(const std::filesystem::path& model, const std::filesystem::path& engine,
                    const AutoOptions& options) {
  return AutoRun(model, engine, options).run();
}

}  // namespace graft::toolkit

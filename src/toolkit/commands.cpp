// Composes commands, quoted for a shell.
#include "graft/toolkit/commands.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <optional>
#include <string_view>
#include <utility>

#include "core/shell_quoted.hpp"
#include "graft/toolkit/inspect.hpp"
#include "operator_library/load.hpp"
#include "toolkit/build_arguments.hpp"

namespace graft::toolkit {
namespace {

std::string engine_option(CpuEngine engine) {
  switch (engine) {
    case CpuEngine::automatic: break;
    case CpuEngine::openvino: return " --engine openvino";
    case CpuEngine::onnxruntime: return " --engine onnxruntime";
    case CpuEngine::both: return " --engine both";
  }
  return "";
}

/// Returns an option followed by a quoted path, such as " --output out.onnx", or an empty string for an empty path.
std::string path_option(std::string_view option, const std::filesystem::path& path) {
  return path.empty() ? "" : fmt::format(" {} {}", option, shell_path(path));
}

/// Returns the option followed by a value, repeated for each value, such as " --only a --only b".
std::string repeated_option(std::string_view option, const std::vector<std::string>& values) {
  std::string text;
  for (const std::string& value : values) text += fmt::format(" {} {}", option, shell_argument(value));
  return text;
}

std::string data_options(const DataFiles& files) {
  return repeated_option("--data", files.sources) + path_option("--recipe", files.recipe) +
         path_option("--labels", files.labels);
}

template <class Number>
std::string number_option(std::string_view option, const std::optional<Number>& number) {
  return number ? fmt::format(" {} {}", option, *number) : "";
}

/// Returns the command-line options that choose the rewrites and their proofs.
std::string rewrite_options(const report::ConvertOptions& options) {
  std::string text;
  if (!options.rules.empty()) text += " --rules " + shell_path(options.rules);
  if (!options.release.empty()) text += " --for " + options.release;
  if (options.plugins == report::Plugins::always) text += " --plugins always";
  if (options.plugins == report::Plugins::never) text += " --plugins never";
  if (!options.only.empty()) text += fmt::format(" --passes {}", fmt::join(options.only, ","));
  if (!options.without.empty()) text += fmt::format(" --passes=-{}", fmt::join(options.without, ",-"));
  text += engine_option(options.engine);
  if (options.unroll != report::default_unroll) text += fmt::format(" --unroll {}", options.unroll);
  if (options.quantized != report::Quantized::exact) text += " --quantized " + to_string(options.quantized);
  if (!options.prove) text += " --no-prove";
  if (options.prove_each) text += " --prove-each";
  if (!options.functions) text += " --no-functions";
  if (!options.check) text += " --no-check";
  return text;
}

/// Returns the command-line options that limit the time and number of runs of TensorRT. Limits with the default value
/// are left out.
std::string budget_options(const ProbeBudget& budget) {
  const ProbeBudget usual;
  std::string text;
  if (budget.trial_seconds != usual.trial_seconds) text += fmt::format(" --time-limit {}", budget.trial_seconds);
  if (budget.max_builds != usual.max_builds) text += fmt::format(" --max-builds {}", budget.max_builds);
  if (budget.max_seconds != usual.max_seconds) text += fmt::format(" --max-seconds {}", budget.max_seconds);
  return text;
}

/// Returns the command-line options that apply only to int8 and f8.
std::string int8_options(const Int8Options& options) {
  std::string text;
  if (options.samples != 0) text += fmt::format(" --samples {}", options.samples);
  if (options.calibration) text += " --method " + std::string(to_string(*options.calibration));
  text += number_option("--percentile", options.percentile);
  text += path_option("--cache", options.cache) + path_option("--write-cache", options.write_cache) +
          path_option("--state", options.state);
  std::vector<std::string> improve;
  for (const auto& [is_set, word] :
       {std::pair(options.improve.equalize, "equalize"), std::pair(options.improve.smooth, "smooth"),
        std::pair(options.improve.round, "round"), std::pair(options.improve.bias, "bias")}) {
    if (is_set) improve.emplace_back(word);
  }
  if (!improve.empty()) text += fmt::format(" --improve {}", fmt::join(improve, ","));
  if (options.rest) text += fmt::format(" --rest {}", to_string(*options.rest));
  text += number_option("--max-drop", options.max_drop);
  for (const std::string& output : options.judge_outputs) text += " --judge-output " + shell_argument(output);
  return text + number_option("--judged", options.judged);
}

}  // namespace

std::string library_options() {
  std::string options;
  for (const OperatorLibrary& library : operator_libraries()) options += " --operators " + shell_path(library.file);
  return options;
}

std::string tensorrt_options(const report::TrialSettings& settings) {
  std::string text;
  if (settings.tensorrt != report::TrialSettings().tensorrt) text += " --tensorrt " + settings.tensorrt;
  for (const std::filesystem::path& library : settings.plugin_libraries) text += path_option("--plugin-lib", library);
  if (settings.plugin_override) text += " --plugin-override";
  return text;
}

std::string trial_options(const report::TrialSettings& settings) {
  std::string text = repeated_option("--shapes", settings.shapes);
  if (!settings.targets.empty()) text += fmt::format(" --target {}", fmt::join(settings.targets, ","));
  return text + tensorrt_options(settings);
}

std::string shape_options(const Shapes& shapes) {
  std::string options;
  for (const auto& [name, shape] : shapes) {
    std::vector<std::string> sizes;
    for (const std::int64_t size : shape) sizes.push_back(size < 0 ? "?" : std::to_string(size));
    options += " --input " + shell_argument(fmt::format("{}:{}", name, fmt::join(sizes, "x")));
  }
  return options;
}

std::string verify_command(const ModelFiles& reference, const std::filesystem::path& candidate,
                           const VerifyOptions& options) {
  std::string command = "graft verify " + shell_path(reference.model);
  if (!reference.weights.empty()) command += " " + shell_path(reference.weights);
  command += " " + shell_path(candidate);
  for (const std::string& output : reference.outputs) command += " --keep-output " + shell_argument(output);
  command += data_options(options.data_files) + shape_options(options.shapes);
  if (options.data_files.samples != 0) command += fmt::format(" --samples {}", options.data_files.samples);
  for (const auto& [name, range] : options.ranges) {
    command += " --range " + shell_argument(fmt::format("{}={}..{}", name, range.lowest, range.highest));
  }
  for (const std::string& output : options.judge_outputs) command += " --judge-output " + shell_argument(output);
  if (options.seeds != 0) command += fmt::format(" --seeds {}", options.seeds);
  command += number_option("--rtol", options.relative) + number_option("--atol", options.absolute);
  if (options.snr_db) command += fmt::format(" --snr {:g}", *options.snr_db);
  if (options.own_kernels) command += " --kernels own";
  return command + engine_option(options.engine) + library_options();
}

std::string verify_command(const report::ConvertReport& report, const std::filesystem::path& candidate) {
  return verify_command({.model = report.file, .weights = report.import.weights, .outputs = report.import.outputs},
                        candidate);
}

std::string network_arguments(const std::filesystem::path& file, const ImportOptions& import) {
  std::string arguments = shell_path(file);
  if (!import.weights.empty()) arguments += " " + shell_path(import.weights);
  arguments += shape_options(import.shapes);
  for (const std::string& output : import.outputs) arguments += " --keep-output " + shell_argument(output);
  return arguments;
}

std::string convert_command(const std::filesystem::path& file, const ImportOptions& import,
                            const report::ConvertOptions& options) {
  std::string command =
      fmt::format("graft convert {} -o {}", network_arguments(file, import), shell_path(options.output));
  command += rewrite_options(options);
  if (options.asks_tensorrt()) {
    command += trial_options(trial_settings(options.inspect)) + budget_options(options.inspect.budget);
  }
  return command;
}

std::string cut_command(const std::filesystem::path& file, const ImportOptions& import,
                        const report::ConvertOptions& options) {
  return convert_command(file, import, options) + " --cut" + library_options();
}

std::string quantize_command(const std::filesystem::path& file, const QuantizeOptions& options) {
  std::string command = fmt::format("graft quantize {} -o {} --precision {}", shell_path(file),
                                    shell_path(options.output), to_string(options.precision));
  command += data_options(options.data_files);
  command += shape_options(options.shapes) + repeated_option("--keep", options.keep);
  command += repeated_option("--only", options.only);
  if (options.typed_io) command += " --typed-io";
  command += number_option("--limit", options.limit_db) + int8_options(options.int8);
  return command + engine_option(options.engine) + library_options();
}

std::string build_command(const Model& model, const std::filesystem::path& engine, const BuildOptions& options) {
  std::string command = fmt::format("graft build {} -o {}", shell_path(options.model_file), shell_path(engine));
  for (const std::string& word : build_arguments(model, options)) {
    if (word == "--tensorrt=auto" || word == "--verbose") continue;  // the default, and an option of this call's log
    const std::size_t end = word.find('=');
    command += " " + word.substr(0, end);
    if (end != std::string::npos) command += " " + shell_argument(word.substr(end + 1));
  }
  if (!options.plugins) command += " --plugins never";
  for (const std::filesystem::path& library : options.plugin_libraries) command += path_option("--plugin-lib", library);
  for (const std::string& library : find_build_needs(model).libraries) command += path_option("--operators", library);
  return command;
}

}  // namespace graft::toolkit

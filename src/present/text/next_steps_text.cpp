// Composes commands. The converted model of model.onnx is named model.graft.onnx.
#include "present/text/next_steps_text.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "graft/operator/registry.hpp"
#include "graft/setting.hpp"
#include "inspect/advice.hpp"
#include "inspect/next_steps.hpp"
#include "inspect/suggested_ranges.hpp"
#include "inspect/tensorrt_release.hpp"
#include "onnx/known_sizes.hpp"
#include "onnx/operator_node.hpp"
#include "onnx/standard_operators.hpp"
#include "operator_library/load.hpp"
#include "present/text/shell_quoted.hpp"
#include "toolkit/access.hpp"
#include "toolkit/commands.hpp"
#include "toolkit/shape_ranges.hpp"

namespace graft::present {
namespace {

using Kind = inspect::NextStep::Kind;

/// Returns " --operators LIB" for each library, because the next command needs the libraries again.
std::string options_of(const std::vector<std::string>& libraries) {
  std::string options;
  for (const std::string& library : libraries) options += fmt::format(" --operators {}", shell_path(library));
  return options;
}

/// Returns the file in the folder of the model with the model's name and another extension.
std::filesystem::path sibling_of(const std::filesystem::path& model, std::string_view extension) {
  std::filesystem::path sibling = model.parent_path() / model.stem();
  return sibling += extension;
}

std::string build_command(const std::filesystem::path& model, const std::vector<std::string>& libraries,
                          std::string options = {}, const std::vector<std::string>& shapes = {}) {
  for (const std::string& shape : shapes) options += fmt::format(" --shapes {}", shell_argument(shape));
  return fmt::format("graft build {} -o {}{}{}", shell_path(model), shell_path(sibling_of(model, ".engine")), options,
                     options_of(libraries));
}

/// The ranges for a build, each NAME=MIN..OPT..MAX.
struct RangesOfBuild {
  std::vector<std::string> ranges;
  bool is_computable = true;  ///< Whether shape inference accepts the ranges, where they are suggested.
};

/// Returns the ranges for which TensorRT built the model, or else suggested ranges: a build needs ranges for dynamic
/// inputs, and for inputs whose values decide sizes.
RangesOfBuild ranges_for(const onnx::Model& model, const std::optional<report::ProbeSummary>& probe) {
  if (probe && (probe->built || !probe->shapes.empty())) return {probe->shapes};
  RangesOfBuild found;
  const std::vector<inspect::SuggestedRanges> suggested = inspect::suggest_ranges(model);
  for (const auto& [name, range] : suggested.front()) {
    if (!range.sizes.empty()) found.ranges.push_back(fmt::format("{}={}", name, range.sizes));
    if (range.decides_sizes) found.ranges.push_back(fmt::format("{}={}", name, range.values));
    found.is_computable = found.is_computable && range.is_computable;
  }
  return found;
}

/// Returns whether an input is the shape to which a Reshape brings a tensor of fixed sizes. Shapes of as many elements,
/// one of which is at least as large as the other in each dimension, are equal, so that no range has several.
bool is_shape_of_fixed_sizes(const onnx::Value& value) {
  return std::any_of(value.uses.begin(), value.uses.end(), [](const onnx::Use& use) {
    const onnx::Node& node = *use.node;
    if ((node.is("Cast") || node.is("Identity")) && node.output() != nullptr) {
      return is_shape_of_fixed_sizes(*node.output());
    }
    const onnx::Value* data = node.is("Reshape") && use.index == 1 ? node.input(0) : nullptr;
    return data != nullptr && data->shape && onnx::has_known_sizes(*data->shape);
  });
}

/// Returns which of the ranges are ranges of values: an engine computes only sizes that these lead to.
std::string note_on_values(const onnx::Model& model, const std::vector<std::string>& ranges) {
  std::vector<std::string> names;
  std::vector<std::string> single;
  for (const onnx::Value* input : model.graph().inputs()) {
    const bool has_range = std::any_of(ranges.begin(), ranges.end(),
                                       [&](const std::string& range) { return range.starts_with(input->name + "="); });
    if (!has_range || !input->shape || !onnx::has_known_sizes(*input->shape)) continue;
    (is_shape_of_fixed_sizes(*input) ? single : names).push_back(input->name);
  }
  std::string note;
  if (!names.empty()) {
    note += fmt::format(
        "; the values of {} decide sizes: replace the range{} with the smallest, usual and largest values that the "
        "network will receive",
        fmt::join(names, ", "), names.size() == 1 ? "" : "s");
  }
  for (const std::string& name : single) {
    note += fmt::format(
        "; the values of {0} are the shape for a tensor of fixed sizes, and an engine has only one such shape: give "
        "the one that the network will receive as the smallest, usual and largest values of {0}",
        name);
  }
  return note;
}

/// Returns the ranges for a half of a network that was cut: the ranges of the probe if it has one for each input,
/// otherwise suggested ranges, because values between the halves have no range in the probe and all ranges have to fit
/// together.
std::vector<std::string> ranges_for_half(const onnx::Model& half, const std::optional<report::ProbeSummary>& probe) {
  std::vector<std::string> suggested = ranges_for(half, std::nullopt).ranges;
  if (!probe) return suggested;
  std::vector<std::string> probed;
  for (const std::string& range : suggested) {
    const std::string input = range.substr(0, range.rfind('=') + 1);
    const auto same = std::find_if(probe->shapes.begin(), probe->shapes.end(),
                                   [&](const std::string& shape) { return shape.starts_with(input); });
    if (same == probe->shapes.end()) return suggested;
    probed.push_back(*same);
  }
  return probed;
}

/// Returns " --target sm120" if the engine contains a plugin that does not run on every GPU of a build without a
/// target. Operators that one release runs natively, such as NonMaxSuppression, become plugins in another release, and
/// therefore count as plugins.
std::string target_option(const std::vector<report::NodeSupport>& nodes, const onnx::Model& model,
                          const std::vector<std::string>& targets_of_plugins) {
  bool has_plugin =
      std::any_of(nodes.begin(), nodes.end(), [](const auto& node) { return node.support == report::Support::plugin; });
  model.graph().for_each_node(
      [&](const onnx::Node& node) { has_plugin = has_plugin || onnx::find_onnx_operator(node) != nullptr; });
  if (!has_plugin || targets_of_plugins.empty()) return {};
  return fmt::format(" --target {}", fmt::join(targets_of_plugins, ","));
}

/// Returns why the build is the next step. "nothing is in the way" requires that TensorRT has built the model.
std::string why_to_build(bool was_asked, bool is_built) {
  if (is_built) return "TensorRT built this model";
  return was_asked ? "TensorRT's parser accepts this model; it was not built"
                   : "no rule predicts a problem; it was not built";
}

/// Returns a note that the build has to run where the release that the user named is installed; empty if the user named
/// none.
std::string where_to_build(const std::optional<inspect::Release>& release) {
  return release ? fmt::format("; run the build where {} is installed", inspect::title_of(*release)) : "";
}

/// Returns a note that the command should run where the release that the user named is installed; empty if the user
/// named none.
std::string note_on_installed(const std::optional<inspect::Release>& release) {
  return release ? fmt::format("; run it where {} is installed, because another release may behave differently",
                               inspect::title_of(*release))
                 : "";
}

/// The operators of a model that are from loaded libraries.
struct OperatorsOfLibraries {
  std::set<std::string> operators;
  std::vector<std::string> files;  ///< The libraries that have plugins.
};

OperatorsOfLibraries operators_of_libraries(const onnx::Model& model) {
  OperatorsOfLibraries found;
  model.graph().for_each_node([&](const onnx::Node& node) {
    const onnx::OperatorMatch match = find_operator_for(node);
    const OperatorLibrary* library = match ? library_of(*match.type) : nullptr;
    if (library == nullptr) return;
    found.operators.emplace(match.type->name);
    if (has_plugins(*library) &&
        std::find(found.files.begin(), found.files.end(), library->file) == found.files.end()) {
      found.files.push_back(library->file);
    }
  });
  return found;
}

/// Returns why a build needs --operators for these operators, or why it does not.
std::string why_with_operators(const OperatorsOfLibraries& found) {
  const char* const functions = found.operators.size() == 1 ? "its function" : "their functions";
  if (found.files.empty()) {
    return fmt::format("builds {} from {}: the library was built without CUDA, so it has no plugins",
                       fmt::join(found.operators, ", "), functions);
  }
  return fmt::format("without --operators, {} would be built from {}", fmt::join(found.operators, ", "), functions);
}

/// Returns the loaded libraries that have plugins. `graft build` refuses a library without plugins and does not need
/// it, because its operators are built from their functions.
std::vector<std::string> plugin_libraries() {
  std::vector<std::string> files;
  for (const OperatorLibrary& library : operator_libraries()) {
    if (has_plugins(library)) files.push_back(library.file);
  }
  return files;
}

/// Returns the model's files and the options with which the model was read, as arguments of a command that reads a
/// network.
std::string network_arguments(const std::filesystem::path& file, const toolkit::ImportOptions& import) {
  std::string arguments = shell_path(file);
  if (!import.weights.empty()) arguments += " " + shell_path(import.weights);
  arguments += toolkit::shape_options(import.shapes);
  for (const std::string& output : import.outputs) arguments += " --keep-output " + shell_argument(output);
  return arguments;
}

/// Returns the command that builds `model`, which is in `file` and is the result of a conversion or a half of it.
std::string build_command(const report::ConvertReport& report, const onnx::Model& model,
                          const std::filesystem::path& file, const OperatorsOfLibraries& found,
                          const std::vector<std::string>& shapes) {
  std::string options = report.uses_plugins() ? "" : " --plugins never";
  const std::vector<std::string>& targets = report.options.inspect.targets;
  if (report.asks_tensorrt() && !targets.empty()) {
    options += fmt::format(" --target {}", fmt::join(targets, ","));
  } else if (report.uses_plugins() && (found.operators.empty() || !found.files.empty())) {
    options += target_option(report.nodes, model, report.targets_of_plugins);
  }
  return build_command(file, found.files, options, shapes);
}

/// Returns the options that choose the rewrites and their proofs. A conversion that cuts needs the functions.
std::string rewrite_options(const report::ConvertOptions& options, bool keeps_plugins, bool cuts) {
  std::string text;
  if (!options.rules.empty()) text += " --rules " + shell_path(options.rules);
  if (!options.release.empty()) text += " --for " + options.release;
  if (options.plugins == report::Plugins::always) text += " --plugins always";
  if (options.plugins == report::Plugins::never && keeps_plugins) text += " --plugins never";
  if (!options.only.empty()) text += fmt::format(" --passes {}", fmt::join(options.only, ","));
  if (!options.without.empty()) text += fmt::format(" --passes=-{}", fmt::join(options.without, ",-"));
  switch (options.engine) {
    case toolkit::CpuEngine::automatic: break;
    case toolkit::CpuEngine::openvino: text += " --engine openvino"; break;
    case toolkit::CpuEngine::onnxruntime: text += " --engine onnxruntime"; break;
    case toolkit::CpuEngine::both: text += " --engine both"; break;
  }
  if (!options.prove) text += " --no-prove";
  if (options.prove_each) text += " --prove-each";
  if (!options.functions && !cuts) text += " --no-functions";
  if (!options.check) text += " --no-check";
  return text;
}

/// Returns the options that say how the installed TensorRT is run.
std::string trial_options(const toolkit::InspectOptions& options) {
  const toolkit::InspectOptions usual;
  const toolkit::ProbeBudget& budget = options.budget;
  std::string text;
  for (const std::string& shape : options.shape_texts) text += " --shapes " + shell_argument(shape);
  for (const auto& shape : options.shapes) text += " --shapes " + shell_argument(toolkit::text_of(shape));
  if (!options.targets.empty()) text += fmt::format(" --target {}", fmt::join(options.targets, ","));
  if (options.tensorrt != usual.tensorrt) text += " --tensorrt " + options.tensorrt;
  for (const std::filesystem::path& library : options.plugin_libraries) text += " --plugin-lib " + shell_path(library);
  if (options.plugin_override) text += " --plugin-override";
  if (budget.trial_seconds != usual.budget.trial_seconds) text += fmt::format(" --time-limit {}", budget.trial_seconds);
  if (budget.max_builds != usual.budget.max_builds) text += fmt::format(" --max-builds {}", budget.max_builds);
  if (budget.max_seconds != usual.budget.max_seconds) text += fmt::format(" --max-seconds {}", budget.max_seconds);
  return text;
}

/// Returns --probe for a conversion that cuts, if it is not the usual one.
std::string judge_option(const report::ConvertReport& report) {
  const report::ConvertOptions& options = report.options;
  if (!report.asks_tensorrt()) return options.check && options.release.empty() ? " --probe none" : "";
  return options.inspect.judge == report::Judge::automatic ? "" : " --probe " + to_string(options.inspect.judge);
}

/// How a printed command differs from the report.
struct Repeated {
  bool keeps_plugins = true;  ///< False: without the option that leaves out plugins.
  bool cuts = false;
  bool explains = false;
};

/// Returns the command that repeats a conversion with the same options.
std::string convert_command(const report::ConvertReport& report, const Repeated& how) {
  std::string command =
      fmt::format("graft convert {} -o {}", network_arguments(report.file, report.import), shell_path(report.output));
  command += rewrite_options(report.options, how.keeps_plugins, how.cuts);
  if (report.asks_tensorrt()) command += trial_options(report.options.inspect);
  if (how.cuts) command += judge_option(report) + " --cut";
  if (how.explains) command += " --explain";
  return command + library_options();
}

/// Returns the command that explains the rules that could not be applied.
NextCommand next_for_rules(const report::ConvertReport& report, bool cuts) {
  return {convert_command(report, {.cuts = cuts, .explains = true}),
          "explains each rule; correct the rules that could not be done, or mark them as optional"};
}

/// Returns the next command after a conversion whose result TensorRT does not run, or may not run.
NextCommand next_where_it_does_not_run(const report::ConvertReport& report) {
  const std::vector<report::NodeSupport>& nodes = report.nodes;
  const std::optional<inspect::Release> named = inspect::find_release(report.options.release);
  const std::string release = named ? fmt::format(" --for {}", inspect::name_of(*named)) : "";
  const std::string inspection =
      fmt::format("graft inspect {}{}", shell_path(report.output), release + library_options());
  const std::string without_plugins = fmt::format("leave out {}", setting_name(Setting::without_plugins));
  if (std::any_of(nodes.begin(), nodes.end(), [](const auto& node) {
        return inspect::is_bad(node.support) && node.advice == inspect::advice_on_fault;
      })) {
    return {inspection, "lists the nodes with a fault: correct the program that wrote the model"};
  }
  if (std::any_of(nodes.begin(), nodes.end(), [&](const auto& node) { return node.advice == without_plugins; })) {
    return {convert_command(report, {.keeps_plugins = false}), "a plugin of Graft runs the nodes above"};
  }
  const auto bad =
      std::count_if(nodes.begin(), nodes.end(), [](const auto& node) { return inspect::is_bad(node.support); });
  const auto wrong = std::count_if(nodes.begin(), nodes.end(), [](const auto& node) {
    return inspect::is_bad(node.support) && inspect::is_computed_wrongly(node);
  });
  if (inspect::advises_cut(nodes) || (bad != 0 && report.can_be_cut)) {  // as inspect does
    return {convert_command(report, {.cuts = true}),
            fmt::format("two halves: one for TensorRT, and one for the host with the nodes that {}",
                        inspect::problem_text(bad, wrong))};
  }
  if (wrong != 0 && wrong == bad) return {inspection, "lists the nodes that TensorRT computes wrongly, and what to do"};
  if (!report.check && named) {
    // The rules of the release have answered already.
    return {fmt::format("graft inspect {}{}", shell_path(report.output), library_options()),
            "runs the installed TensorRT on the result" + note_on_installed(named)};
  }
  if (!report.check) {
    return {inspection, report.runs() ? "lists the nodes that do not run, with the reasons"
                                      : "runs the installed TensorRT on the result, or reports what is missing"};
  }
  if (!report.check->failing_shapes.empty()) {
    return {inspection, "shows the sizes that were tried; --shapes NAME=MIN..OPT..MAX sets other sizes"};
  }
  if (!report.runs().has_value()) {
    return {inspection, "judges each node with TensorRT; --max-seconds and --max-builds allow more time"};
  }
  return {fmt::format("graft inspect {} --reduce {}{}", shell_path(report.output),
                      shell_path(sibling_of(report.output, ".smallest.onnx")), library_options()),
          "writes the smallest part that fails, for a bug report or for experiments"};
}

/// Whether ONNX Runtime may have all operators of the model.
bool may_run_in_onnxruntime(const onnx::Model& model) {
  bool may = true;
  model.graph().for_each_node([&](const onnx::Node& node) { may = may && onnx::may_be_of_onnxruntime(model, node); });
  return may;
}

NextCommand command_of(const inspect::NextStep& step, const report::InspectReport& report) {
  const std::filesystem::path& model = report.file;
  const onnx::Model& graphs = toolkit::model_of(report.model);
  const bool is_converted = report.is_converted;
  const std::optional<inspect::Release> release = inspect::find_release(report.release);
  const std::string options =
      (report.release.empty() ? "" : fmt::format(" --for {}", report.release)) + library_options();
  const std::string file = network_arguments(report.file, report.import);
  const std::string converted = shell_path(sibling_of(model, ".graft.onnx"));
  const std::string nodes = count_text(step.nodes, "node");
  if (step.kind == Kind::build && !is_converted && toolkit::format_of(model) != toolkit::Format::onnx) {
    return {fmt::format("graft convert {} -o {}{}", file, converted, options),
            why_to_build(report.probe.has_value(), report.is_built_as_it_is()) + "; `graft build` needs an ONNX model"};
  }
  switch (step.kind) {
    case Kind::correct: return {"", fmt::format("{} with a fault: correct the program that wrote the model", nodes)};
    case Kind::convert:
      return {
          fmt::format("graft convert {} -o {}{}", file, converted, options),
          fmt::format("rewrites or removes {}, or creates a plugin for {}", nodes, step.nodes == 1 ? "it" : "them")};
    case Kind::guard:
      return {fmt::format("graft convert {} -o {}{}", file, converted, options),
              fmt::format("rewrites {} that TensorRT computes wrongly", nodes)};
    case Kind::cut:
      if (!report.can_be_cut) {
        return {
            "",
            fmt::format(
                "{} that {}, and the network cannot be cut into a half for TensorRT and one for the host: change the "
                "network as described above{}",
                nodes, inspect::problem_text(step.nodes, step.wrong),
                may_run_in_onnxruntime(graphs) ? ", or run it in another runtime, such as ONNX Runtime" : "")};
      }
      return {fmt::format("graft convert {} -o {} --cut{}", file, converted, options),
              fmt::format("two halves: one for TensorRT, and one for the host with {} that {}", nodes,
                          inspect::problem_text(step.nodes, step.wrong))};
    case Kind::probe:
      return {fmt::format("graft inspect {}{}{}", file, is_converted ? " --convert" : "", library_options()),
              fmt::format("{} that only TensorRT can judge{}", nodes, note_on_installed(release))};
    case Kind::build: {
      if (report.probe && !report.probe->built && !report.probe->failing_shapes.empty()) {
        return {"",
                "TensorRT did not build the model for the sizes that were tried: set the sizes of your use with "
                "--shapes NAME=MIN..OPT..MAX"};
      }
      const std::string why = why_to_build(report.probe.has_value(), report.is_built_as_it_is());
      if (is_converted || report.given_shapes_need_conversion) {
        return {fmt::format("graft convert {} -o {}{}", file, converted, options), why};
      }
      auto [ranges, is_computable] = ranges_for(graphs, report.probe);
      if (!report.probe && !is_computable) {
        return {"", why + "; no sizes were found for which the network is valid: set them with `graft build --shapes`"};
      }
      ranges.insert(ranges.end(), report.ranges_of_given_shapes.begin(), report.ranges_of_given_shapes.end());
      return {build_command(model, plugin_libraries(), target_option(report.nodes, graphs, report.targets_of_plugins),
                            ranges),
              why + where_to_build(release) + note_on_values(graphs, ranges)};
    }
  }
  return {};
}

}  // namespace

std::vector<NextCommand> next_commands(const report::InspectReport& report) {
  std::vector<NextCommand> commands;
  for (const inspect::NextStep& step :
       inspect::next_steps(report.nodes, report.is_converted, report.is_built_as_it_is())) {
    commands.push_back(command_of(step, report));
  }
  return commands;
}

std::vector<NextCommand> next_commands(const report::ConvertReport& report) {
  std::vector<NextCommand> commands;
  if (!report.values.is_good()) {
    const std::string& command = report.values.command;
    const std::optional<report::Verdict> verdict = report.verified();
    if (verdict == report::Verdict::different) {
      commands.push_back(
          {command + " --layers", "finds the first node that differs; --data and --range set other inputs"});
    } else if (verdict == report::Verdict::disputed) {
      commands.push_back(
          {command + " --engine onnxruntime", "compares the values in one of the engines that disagree"});
    } else if (!command.empty()) {
      commands.push_back({command, "compares the values; --data and --range set other inputs"});
    }
  }
  if (!report.are_rules_done()) {
    commands.push_back(next_for_rules(report, false));
  }
  if (!report.runs().value_or(false)) commands.push_back(next_where_it_does_not_run(report));
  if (!report.is_complete()) return commands;
  const onnx::Model& model = toolkit::model_of(report.model);
  const OperatorsOfLibraries found = operators_of_libraries(model);
  const std::vector<std::string> ranges = ranges_for(model, report.check).ranges;
  const std::string why = found.operators.empty()
                              ? why_to_build(report.check.has_value(), report.check && report.check->built)
                              : why_with_operators(found);
  commands.push_back(
      {build_command(report, model, report.output, found, ranges),
       why + where_to_build(inspect::find_release(report.options.release)) + note_on_values(model, ranges)});
  return commands;
}

std::vector<NextCommand> next_commands(const report::ConvertReport& report, const toolkit::CutResult& cut) {
  const bool is_refused = !cut.host_refused.empty();
  const bool is_same = cut.verdict ? cut.verdict == toolkit::Verdict::same : is_refused && !cut.host_engine.empty();
  const NextCommand comparison{
      toolkit::verify_command(
          {.model = report.file, .weights = report.import.weights, .outputs = report.import.outputs}, cut.file),
      "runs both halves on the CPU and compares them with the whole network; --data and --range set other inputs"};
  if (!report.are_rules_done()) return {next_for_rules(report, true)};
  if (cut.verdict == toolkit::Verdict::different || !report.are_values_kept()) return {comparison};
  const onnx::Model& half = model_of(cut.tensorrt_model);
  std::vector<NextCommand> commands;
  const std::vector<std::string> ranges = ranges_for_half(half, report.check);
  commands.push_back({build_command(report, half, cut.tensorrt.file, operators_of_libraries(half), ranges),
                      "builds the half for TensorRT" + where_to_build(inspect::find_release(report.options.release)) +
                          note_on_values(half, ranges)});
  const bool is_open = cut.verdict ? cut.verdict == toolkit::Verdict::nothing_compared : cut.not_verified.empty();
  if (is_same || is_open) commands.push_back(comparison);
  const std::string order = cut.tensorrt_is_first ? "the engine, and then the half for the host"
                                                  : "the half for the host, and then the engine";
  commands.push_back(
      {"", is_refused
               ? fmt::format("an application runs {}, in a runtime that has the nodes of this half", order)
               : fmt::format("an application runs {}: docs/guide/cut_a_network.md has an example program", order)});
  return commands;
}

std::optional<NextCommand> canary_of_own_plugins(const report::BuildReport& report) {
  std::vector<std::string> libraries;
  std::set<std::string> operators;
  for (const report::PluginLayer& plugin : report.network.plugins) {
    const OperatorType* type = find_operator(plugin.plugin);
    const OperatorLibrary* library = type == nullptr ? nullptr : library_of(*type);
    if (library == nullptr || plugin.plugin_namespace != library->plugin_namespace) continue;
    operators.emplace(type->name);
    if (std::find(libraries.begin(), libraries.end(), library->file) == libraries.end()) {
      libraries.push_back(library->file);
    }
  }
  if (operators.empty()) return std::nullopt;
  std::string options = options_of(libraries);
  // The command names all libraries that the build loaded: with --plugin-lib, a canary adds no library by itself, and
  // runs Graft's own operators as plugins too.
  for (const report::LoadedPluginLibrary& library : report.plugin_libraries) {
    options += fmt::format(" --plugin-lib {}", shell_path(library.path));
  }
  return NextCommand{
      fmt::format("graft canary {} -o {}{}", shell_path(report.model), shell_path(sibling_of(report.model, ".canary")),
                  options),
      fmt::format("checks whether the CUDA kernel{} of {} compute{} the same as the CPU; this needs a GPU, and a build "
                  "does not check it",
                  operators.size() == 1 ? "" : "s", fmt::join(operators, ", "), operators.size() == 1 ? "s" : "")};
}

Table next_table(const std::vector<NextCommand>& commands) {
  Table table(0);
  for (std::size_t i = 0; i < commands.size(); ++i) {
    const NextCommand& next = commands[i];
    // An empty cell follows, because the last cell of a row is wrapped at the width of the terminal.
    if (i == 0 || !next.command.empty()) table.add({i == 0 ? "next" : "", {next.command, Color::strong}, ""});
    table.add({"", {next.why, Color::faint}});
  }
  return table;
}

}  // namespace graft::present

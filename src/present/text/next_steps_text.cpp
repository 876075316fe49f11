// Composes commands. The converted model of model.onnx is named model.graft.onnx.
#include "present/text/next_steps_text.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <set>
#include <string>
#include <vector>

#include "core/guide_pages.hpp"
#include "core/shell_quoted.hpp"
#include "graft/setting.hpp"
#include "graft/toolkit/build.hpp"
#include "graft/toolkit/commands.hpp"
#include "graft/toolkit/operators.hpp"

namespace graft::present {
namespace {

using Kind = report::NextStep::Kind;

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

/// Returns the ranges for which TensorRT built the model, or else suggested ranges: a build needs ranges for dynamic
/// inputs, and for inputs whose values decide sizes. The ranges `given` replace the suggested ranges of their inputs.
toolkit::SuggestedRanges ranges_for(const toolkit::Model& model, const std::optional<report::ProbeSummary>& probe,
                                    const std::vector<std::string>& given) {
  if (probe && (probe->built || !probe->shapes.empty())) return {.ranges = probe->shapes};
  toolkit::SuggestedRanges found = toolkit::suggest_ranges(model);
  if (given.empty()) return found;
  std::erase_if(found.ranges, [&](const std::string& suggested) {
    const std::string input = suggested.substr(0, suggested.rfind('=') + 1);
    return std::ranges::any_of(given, [&](const std::string& range) { return range.starts_with(input); });
  });
  found.ranges.insert(found.ranges.begin(), given.begin(), given.end());
  found.are_computable = true;
  return found;
}

/// Returns the names of the `inputs` that have a range in `ranges` (NAME=MIN..OPT..MAX).
std::vector<std::string> inputs_with_range(const std::vector<std::string>& inputs,
                                           const std::vector<std::string>& ranges) {
  std::vector<std::string> names;
  std::ranges::copy_if(inputs, std::back_inserter(names), [&](const std::string& input) {
    return std::ranges::any_of(ranges, [&](const std::string& range) { return range.starts_with(input + "="); });
  });
  return names;
}

/// Returns a note on the ranges that are ranges of an input's values instead of its sizes, with the advice to replace
/// them by the values that the network will receive; an empty string if all ranges are ranges of sizes.
std::string note_on_values(const toolkit::BuildNeeds& needs, const std::vector<std::string>& ranges) {
  const std::vector<std::string> names = inputs_with_range(needs.fixed_inputs, ranges);
  std::string note;
  if (!names.empty()) {
    note += fmt::format(
        "; the values of {} determine sizes: replace the range{} with the minimum, optimum and maximum of the values "
        "that the network will receive",
        fmt::join(names, ", "), names.size() == 1 ? "" : "s");
  }
  for (const std::string& name : inputs_with_range(needs.shapes_of_fixed_tensors, ranges)) {
    note += fmt::format(
        "; the values of {0} are the shape of a tensor with fixed sizes, and an engine supports only one such shape: "
        "set the minimum, optimum and maximum of {0} to the shape that the network will receive",
        name);
  }
  return note;
}

/// Returns the ranges for a half of a network that was cut. Returns the ranges of the probe if it has a range for each
/// input; otherwise suggested ranges for all inputs, because the probe has no range for the tensors between the halves
/// and all ranges have to fit together. The ranges `given` by the user replace the suggested ranges of their inputs.
std::vector<std::string> ranges_for_half(const toolkit::Model& half, const std::optional<report::ProbeSummary>& probe,
                                         const std::vector<std::string>& given) {
  std::vector<std::string> suggested = toolkit::suggest_ranges(half).ranges;
  for (std::string& range : suggested) {
    const std::string input = range.substr(0, range.rfind('=') + 1);
    const auto set = std::ranges::find_if(given, [&](const std::string& each) { return each.starts_with(input); });
    if (set != given.end()) range = *set;
  }
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
std::string target_option(const std::vector<report::NodeSupport>& nodes, const toolkit::BuildNeeds& needs,
                          const std::vector<std::string>& targets_of_plugins) {
  const bool has_plugin = needs.may_need_plugin || std::ranges::any_of(nodes, [](const report::NodeSupport& node) {
                            return node.support == report::Support::plugin;
                          });
  if (!has_plugin || targets_of_plugins.empty()) return {};
  return fmt::format(" --target {}", fmt::join(targets_of_plugins, ","));
}

/// Returns the reason why the build is the next step: TensorRT built the model (`is_built`), its parser accepts the
/// model (`was_asked`), or no rule predicts a problem.
std::string why_to_build(bool was_asked, bool is_built) {
  if (is_built) return "TensorRT built this model";
  return was_asked ? "TensorRT's parser accepts this model; it was not built"
                   : "no rule predicts a problem; it was not built";
}

/// Returns a note that the build has to run where the release that the user named is installed; empty if the user named
/// none.
std::string where_to_build(const std::string& release) {
  return release.empty() ? "" : fmt::format("; run the build where {} is installed", release);
}

/// Returns a note that the command should run where the release that the user named is installed; empty if the user
/// named none.
std::string note_on_installed(const std::string& release) {
  return release.empty()
             ? ""
             : fmt::format("; run it where {} is installed, because another release may behave differently", release);
}

/// Returns why a build needs --operators for the operators of libraries, or why it does not.
std::string why_with_operators(const toolkit::BuildNeeds& needs) {
  const std::vector<std::string>& operators = needs.library_operators;
  const char* const functions = operators.size() == 1 ? "its function" : "their functions";
  if (needs.libraries.empty()) {
    return fmt::format("builds {} from {}: the library was built without CUDA, so it has no plugins",
                       fmt::join(operators, ", "), functions);
  }
  return fmt::format("without --operators, {} would be built from {}", fmt::join(operators, ", "), functions);
}

/// Returns the loaded libraries that have plugins. `graft build` refuses a library without plugins and does not need
/// it, because its operators are built from their functions.
std::vector<std::string> plugin_libraries() {
  std::vector<std::string> files;
  for (const toolkit::LoadedLibrary& library : toolkit::loaded_libraries()) {
    if (library.has_plugins) files.push_back(library.file);
  }
  return files;
}

/// Returns the command that builds the model in `file`, which is the result of a conversion or a half of it.
std::string build_command(const report::ConvertReport& report, const std::filesystem::path& file,
                          const toolkit::BuildNeeds& needs, const std::vector<std::string>& shapes) {
  std::string options = report.uses_plugins() ? "" : " --plugins never";
  options += toolkit::tensorrt_options(toolkit::trial_settings(report.options.inspect));
  const std::vector<std::string>& targets = report.options.inspect.targets;
  if (!targets.empty()) {
    options += fmt::format(" --target {}", fmt::join(targets, ","));
  } else if (report.uses_plugins() && (needs.library_operators.empty() || !needs.libraries.empty())) {
    options += target_option(report.nodes, needs, report.targets_of_plugins);
  }
  return build_command(file, needs.libraries, options, shapes);
}

/// Returns the option --probe that a repeated `graft convert --cut` needs, or an empty string if the default of --probe
/// selects the same source of verdicts.
std::string judge_option(const report::ConvertReport& report) {
  const report::ConvertOptions& options = report.options;
  if (!report.asks_tensorrt()) return options.check && options.release.empty() ? " --probe none" : "";
  return options.inspect.judge == report::Judge::automatic ? "" : " --probe " + to_string(options.inspect.judge);
}

/// The differences between the `graft convert` command that convert_command returns and the options of the report.
struct Repeated {
  bool keeps_plugins = true;        ///< Whether the option that forbids plugins is repeated; if false, it is left out.
  bool leaves_out_plugins = false;  ///< Whether the option that forbids plugins is added.
  bool cuts = false;
  bool explains = false;
};

/// Returns the command that repeats a conversion with the same options, except for the differences in `how`. A command
/// with --cut always writes the ONNX functions, which a cut needs.
std::string convert_command(const report::ConvertReport& report, const Repeated& how) {
  report::ConvertOptions options = report.options;
  options.output = report.output;
  options.functions |= how.cuts;
  if (!how.keeps_plugins && options.plugins == report::Plugins::never) options.plugins = report::Plugins::automatic;
  if (how.leaves_out_plugins) options.plugins = report::Plugins::never;
  std::string command = toolkit::convert_command(report.file, report.import, options);
  if (how.cuts) command += judge_option(report) + " --cut";
  if (how.explains) command += " --explain";
  return command + library_options();
}

/// Returns the reason for a conversion without plugins on targets for which the plugin library has no code.
std::string why_without_plugins(const std::vector<std::string>& targets) {
  return fmt::format(
      "rewrites the network without plugins, for which the plugin library has no code for {}; nodes that need a plugin "
      "run on the host",
      fmt::join(targets, ", "));
}

/// Returns the command that explains the rules that could not be applied. `cuts`: the command also has --cut.
NextCommand next_for_rules(const report::ConvertReport& report, bool cuts) {
  return {convert_command(report, {.cuts = cuts, .explains = true}),
          "explains each rule; correct the rules that could not be applied, or mark them as optional"};
}

/// Returns the next command after a conversion whose result TensorRT does not run, or may not run.
NextCommand next_where_it_does_not_run(const report::ConvertReport& report) {
  const std::vector<report::NodeSupport>& nodes = report.nodes;
  const std::string release = report.release.empty() ? "" : fmt::format(" --for {}", report.release);
  const std::string options =
      toolkit::trial_options(toolkit::trial_settings(report.options.inspect)) + library_options();
  const std::string inspection = fmt::format("graft inspect {}{}{}", shell_path(report.output), release,
                                             release.empty() ? options : library_options());
  const std::string without_plugins = fmt::format("remove {}", setting_name(Setting::without_plugins));
  if (std::any_of(nodes.begin(), nodes.end(), [](const auto& node) {
        return report::is_bad(node.support) && node.advice == report::advice_on_fault;
      })) {
    return {inspection, "lists the nodes with a fault: correct the program that wrote the model"};
  }
  if (std::any_of(nodes.begin(), nodes.end(), [&](const auto& node) { return node.advice == without_plugins; })) {
    return {convert_command(report, {.keeps_plugins = false}), "a plugin of Graft runs the nodes above"};
  }
  const auto bad =
      std::count_if(nodes.begin(), nodes.end(), [](const auto& node) { return report::is_bad(node.support); });
  const auto wrong = std::count_if(nodes.begin(), nodes.end(), [](const auto& node) {
    return report::is_bad(node.support) && report::is_computed_wrongly(node);
  });
  if (report.can_be_cut) {
    return {convert_command(report, {.cuts = true}),
            fmt::format("writes two halves: one for TensorRT, and one for the host with the nodes that {}",
                        report::problem_text(bad, wrong))};
  }
  if (wrong != 0 && wrong == bad) return {inspection, "lists the nodes that TensorRT computes wrongly, and what to do"};
  if (!report.check && !report.release.empty()) {
    // The verdicts already follow the rules of this release.
    return {fmt::format("graft inspect {}{}", shell_path(report.output), options),
            "runs the installed TensorRT on the result" + note_on_installed(report.release_title())};
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
                      shell_path(sibling_of(report.output, ".smallest.onnx")), options),
          "writes the smallest part that fails, for a bug report or for experiments"};
}

NextCommand command_of(const report::NextStep& step, const report::InspectReport& report) {
  const std::filesystem::path& model = report.file;
  const bool is_converted = report.is_converted;
  const std::string release = report.release_title();
  // The rules of a release judge without TensorRT.
  const std::string options =
      (report.release.empty() ? toolkit::trial_options(report.trials) : fmt::format(" --for {}", report.release)) +
      library_options();
  const std::string file = toolkit::network_arguments(report.file, report.import);
  const std::string converted = shell_path(sibling_of(model, ".graft.onnx"));
  const std::string nodes = count_text(step.nodes, "node");
  if (step.kind == Kind::build && !is_converted && toolkit::format_of(model) != toolkit::Format::onnx) {
    return {fmt::format("graft convert {} -o {}{}", file, converted, options),
            why_to_build(report.probe.has_value(), report.is_built_as_it_is()) + "; `graft build` needs an ONNX model"};
  }
  const bool lacks_plugins = !report.targets_without_plugins.empty();
  if (lacks_plugins && step.kind != Kind::correct && step.kind != Kind::write && step.kind != Kind::probe) {
    return {fmt::format("graft convert {} -o {} --plugins never --cut{}", file, converted, options),
            why_without_plugins(report.targets_without_plugins)};
  }
  switch (step.kind) {
    case Kind::correct: return {"", fmt::format("{} with a fault: correct the program that wrote the model", nodes)};
    case Kind::convert:
      return {
          fmt::format("graft convert {} -o {}{}", file, converted, options),
          fmt::format("rewrites or removes {}, or creates a plugin for {}", nodes, step.nodes == 1 ? "it" : "them")};
    case Kind::fuse:
      return {fmt::format("graft convert {} -o {}{}", file, converted, options),
              fmt::format("fuses {} to operators of Graft, which run as plugins", nodes)};
    case Kind::guard:
      return {fmt::format("graft convert {} -o {}{}", file, converted, options),
              fmt::format("rewrites {} that TensorRT computes wrongly", nodes)};
    case Kind::cut:
      if (!report.can_be_cut) {
        return {"", fmt::format(
                        "{} {}, and the network cannot be cut into a half for TensorRT and one for the host: change "
                        "the network as "
                        "described above{}",
                        report::problem_text(step.nodes, step.wrong), nodes,
                        report.may_run_in_onnxruntime ? ", or run it in another runtime, such as ONNX Runtime" : "")};
      }
      return {fmt::format("graft convert {} -o {} --cut{}", file, converted, options),
              fmt::format("writes two halves: one for TensorRT, and one for the host with {} that {}", nodes,
                          report::problem_text(step.nodes, step.wrong))};
    case Kind::write: {
      const NodeRef& node = report.nodes[step.first].node;
      return {fmt::format("graft new my_ops --from {} --node {}", shell_path(model), shell_argument(node.name)),
              fmt::format("starts an operator of your own for {}, with the ports and attributes of the node",
                          count_text(step.nodes, report.nodes[step.first].op + " node"))};
    }
    case Kind::probe:
      return {fmt::format("graft inspect {}{}{}{}", file, is_converted ? " --convert" : "",
                          toolkit::trial_options(report.trials), library_options()),
              fmt::format("{} that only TensorRT can judge{}", nodes, note_on_installed(release))};
    case Kind::build: {
      if (report.probe && !report.probe->built && !report.probe->failing_shapes.empty()) {
        return {"",
                "TensorRT did not build the model for the sizes that Graft tried: set the sizes that you need with "
                "--shapes NAME=MIN..OPT..MAX"};
      }
      const std::string why = why_to_build(report.probe.has_value(), report.is_built_as_it_is());
      if (is_converted || report.given_shapes_need_conversion) {
        return {fmt::format("graft convert {} -o {}{}", file, converted, options), why};
      }
      auto [ranges, are_computable] = ranges_for(report.model, report.probe, report.trials.shapes);
      if (!report.probe && !are_computable) {
        return {"", why + "; no sizes were found for which the network is valid: set them with `graft build --shapes`"};
      }
      ranges.insert(ranges.end(), report.ranges_of_given_shapes.begin(), report.ranges_of_given_shapes.end());
      const toolkit::BuildNeeds needs = find_build_needs(report.model);
      const std::vector<std::string>& targets = report.trials.targets;
      const std::string target = targets.empty() ? target_option(report.nodes, needs, report.targets_of_plugins)
                                                 : fmt::format(" --target {}", fmt::join(targets, ","));
      return {build_command(model, plugin_libraries(), target + toolkit::tensorrt_options(report.trials), ranges),
              why + where_to_build(release) + note_on_values(needs, ranges)};
    }
  }
  return {};
}

}  // namespace

std::vector<NextCommand> next_commands(const report::InspectReport& report) {
  std::vector<NextCommand> commands;
  for (const report::NextStep& step : report.next_steps) {
    NextCommand next = command_of(step, report);
    // Two steps may lead to the same command: a network of another format is converted before it is built.
    std::erase_if(commands, [&](const NextCommand& other) { return other.command == next.command; });
    commands.push_back(std::move(next));
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
  if (!report.targets_without_plugins.empty()) {
    commands.push_back({convert_command(report, {.leaves_out_plugins = true, .cuts = true}),
                        why_without_plugins(report.targets_without_plugins)});
    return commands;
  }
  const toolkit::BuildNeeds needs = find_build_needs(report.model);
  const std::vector<std::string> given = toolkit::trial_settings(report.options.inspect).shapes;
  const std::vector<std::string> ranges = ranges_for(report.model, report.check, given).ranges;
  const std::string why = needs.library_operators.empty()
                              ? why_to_build(report.check.has_value(), report.check && report.check->built)
                              : why_with_operators(needs);
  commands.push_back({build_command(report, report.output, needs, ranges),
                      why + where_to_build(report.release_title()) + note_on_values(needs, ranges)});
  return commands;
}

std::vector<NextCommand> next_commands(const report::ConvertReport& report, const toolkit::CutResult& cut) {
  const bool is_refused = !cut.host_refused.empty();
  const bool is_same = cut.verdict ? cut.verdict == toolkit::Verdict::same : is_refused && !cut.host_engine.empty();
  const NextCommand comparison{
      toolkit::verify_command(report, cut.file),
      "runs both halves on the CPU and compares them with the whole network; --data and --range set other inputs"};
  if (!report.are_rules_done()) return {next_for_rules(report, true)};
  if (cut.verdict == toolkit::Verdict::different || !report.are_values_kept()) return {comparison};
  const toolkit::BuildNeeds needs = find_build_needs(cut.tensorrt_model);
  std::vector<NextCommand> commands;
  const std::vector<std::string> given = toolkit::trial_settings(report.options.inspect).shapes;
  const std::vector<std::string> ranges = ranges_for_half(cut.tensorrt_model, report.check, given);
  commands.push_back(
      {build_command(report, cut.tensorrt.file, needs, ranges),
       "builds the half for TensorRT" + where_to_build(report.release_title()) + note_on_values(needs, ranges)});
  const bool is_open = cut.verdict ? cut.verdict == toolkit::Verdict::nothing_compared : cut.not_verified.empty();
  if (is_same || is_open) commands.push_back(comparison);
  const std::string order = cut.tensorrt_is_first ? "the engine, and then the half for the host"
                                                  : "the half for the host, and then the engine";
  commands.push_back(
      {"", is_refused
               ? fmt::format("an application runs {}, in a runtime that has the nodes of this half", order)
               : fmt::format("an application runs {}: {} has an example program", order, guide_page("cut_a_network"))});
  return commands;
}

std::optional<NextCommand> canary_of_own_plugins(const report::BuildReport& report) {
  std::vector<std::string> libraries;
  std::set<std::string> operators;
  const std::vector<toolkit::LoadedLibrary> loaded = toolkit::loaded_libraries();
  for (const report::PluginLayer& plugin : report.network.plugins) {
    const auto library = std::ranges::find_if(loaded, [&](const toolkit::LoadedLibrary& each) {
      return plugin.plugin_namespace == each.plugin_namespace &&
             std::ranges::find(each.operators, plugin.plugin) != each.operators.end();
    });
    if (library == loaded.end()) continue;
    operators.emplace(plugin.plugin);
    if (std::ranges::find(libraries, library->file) == libraries.end()) libraries.push_back(library->file);
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

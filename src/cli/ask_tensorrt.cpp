// The options of `graft inspect` about the real TensorRT, and its answer as text and JSON.
#include "cli/ask_tensorrt.hpp"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <utility>

#include "cli/engine_command.hpp"
#include "cli/interrupts.hpp"
#include "graft/error.hpp"

namespace graft::cli {
namespace {

using inspect::NodeRef;
using inspect::ProbeLevel;
using inspect::SmallestPart;

ProbeLevel level_of(const std::string& word) {
  if (word == "parser") return ProbeLevel::parser;
  return word == "builder" ? ProbeLevel::builder : ProbeLevel::rule;
}

std::vector<std::string> names_of(const std::vector<NodeRef>& nodes) {
  std::vector<std::string> names;
  for (const NodeRef& node : nodes) names.push_back(node.name);
  return names;
}

std::string few_names(const std::vector<NodeRef>& nodes) {
  constexpr std::size_t few = 8;
  std::vector<std::string> names = names_of(nodes);
  names.resize(std::min(few, names.size()));
  const std::string text = fmt::format("{}", fmt::join(names, ", "));
  return nodes.size() <= few ? text : fmt::format("{} and {} more", text, nodes.size() - few);
}

const NodeRef& failing_node(const SmallestPart& part) { return part.inside ? *part.inside : part.nodes.front(); }

std::string line_of(const Console& console, const SmallestPart& part) {
  const std::string who = part.nodes.size() == 1
                              ? failing_node(part).description
                              : fmt::format("these together: {}", fmt::join(names_of(part.nodes), ", "));
  std::string line = fmt::format("wrote {}: {}; {}, {}", console.paint(part.file, Color::strong),
                                 count_text(part.node_count, "node"), who, inspect::what_happened(part.outcome));
  if (part.inside) line += fmt::format(", inside {}", part.nodes.front().description);
  if (!part.alike.empty()) line += fmt::format("; {} alike: {}", part.alike.size(), few_names(part.alike));
  if (!part.shapes.empty()) line += fmt::format("; --shapes {}", fmt::join(part.shapes, " --shapes "));
  return line;
}

Json json_of(const SmallestPart& part) {
  return {{"file", part.file},
          {"nodes", part.node_count},
          {"node", failing_node(part).name},
          {"inside", part.inside ? Json(part.nodes.front().name) : Json()},
          {"alike", names_of(part.alike)},
          {"verdict", inspect::name_of(inspect::verdict_of(part.outcome))},
          {"shapes", part.shapes}};
}

Json json_of_reduced(const std::vector<SmallestPart>& parts) {
  if (parts.empty()) return {};
  Json reduced = json_of(parts.front());
  reduced["others"] = Json::array();
  for (std::size_t i = 1; i < parts.size(); ++i) reduced["others"].push_back(json_of(parts[i]));
  return reduced;
}

/// Nothing fails, so that there is nothing to reduce.
void warn_of_no_failure(const Console& console, const std::string& file, ProbeLevel level,
                        const std::vector<inspect::NodeVerdict>& nodes) {
  const auto bad = std::count_if(nodes.begin(), nodes.end(),
                                 [](const inspect::NodeVerdict& node) { return inspect::is_bad(node.verdict); });
  console.warn(fmt::format("--reduce {}: nothing is written, as TensorRT{} takes the whole model{}", file,
                           level == ProbeLevel::parser ? "'s parser" : "",
                           bad == 0 ? ""
                                    : fmt::format("; its builder does not, the rule says of {}: --probe builder asks",
                                                  count_text(static_cast<std::size_t>(bad), "node"))));
}

void add_lines(const Console& console, const inspect::ProbeAnswer& answer, std::vector<std::string>& lines) {
  for (const SmallestPart& part : answer.reduced) lines.push_back(line_of(console, part));
  if (!answer.not_reduced.empty()) {
    lines.push_back(fmt::format("not written: {}; {} are enough to begin with, mend those and ask again",
                                few_names(answer.not_reduced), inspect::most_reduced));
  }
  if (answer.unanswered > 0) {
    lines.push_back(
        fmt::format("the budget is spent, and {} without an answer: --max-builds and --max-seconds allow more",
                    answer.unanswered == 1 ? "1 node is" : fmt::format("{} nodes are", answer.unanswered)));
  }
  if (answer.pieces > 1) {
    lines.push_back(fmt::format("the nodes that build were built in {} pieces, and not all together", answer.pieces));
  }
  lines.push_back(fmt::format("{} was asked: {}, {}, {}, {:.1f} s",
                              graft::tensorrt_text(answer.tensorrt.flavor, answer.tensorrt.version),
                              count_text(answer.trials.parses, "parse"), count_text(answer.trials.builds, "build"),
                              count_text(answer.trials.processes, "process", "processes"), answer.trials.seconds));
}

}  // namespace

inspect::TrialCallbacks trial_callbacks(const Console& console, Progress& progress) {
  const auto on_start = [&](const inspect::TrialProgress& trial) {
    progress.update(trial.number == 0
                        ? std::string(trial.action)
                        : fmt::format("{} number {}: {}", trial.action, trial.number, count_text(trial.nodes, "node")),
                    trial.fraction);
  };
  const auto on_end = [&](const inspect::TrialProgress& trial) {
    progress.clear();
    console.detail(fmt::format("{} of {}: {}, {:.2f} s", trial.action, count_text(trial.nodes, "node"), trial.outcome,
                               trial.seconds));
  };
  return {.on_start = on_start, .on_end = on_end, .should_stop = interrupted};
}

void add_truth_options(CLI::App& command, ProbeOptions& options) {
  command
      .add_option("--probe,--truth", options.level,
                  "who judges: rule; parser, which is TensorRT's own; builder, which is its builder too (rule)")
      ->type_name("WHO")
      ->check(CLI::IsMember({"rule", "parser", "builder"}));
  command
      .add_option("--plugin-lib", options.trials.libraries,
                  "plugin library for TensorRT to load; once for each (Graft's own, if the model needs it)")
      ->type_name("FILE");
  command
      .add_option(
          "--shapes", options.shapes,
          "smallest, usual and largest shape of an input with dynamic dimensions, NAME=MIN..OPT..MAX, for the builder; "
          "once for each")
      ->type_name("RANGE");
  command.add_option("--target", options.trials.targets, "GPU generations to build for, as for `graft build`")
      ->type_name("LIST")
      ->delimiter(',');
  command.add_option("--tensorrt", options.trials.tensorrt, "which TensorRT: auto, rtx, full (auto)")
      ->type_name("WHICH")
      ->check(CLI::IsMember({"auto", "rtx", "full"}));
  command.add_flag("--plugin-override", options.trials.plugin_override,
                   "plugins win over ONNX operators and functions of their name");
  command
      .add_option("--time-limit", options.trials.limit,
                  "a parse or build, or a plugin library being opened, that takes longer counts as hanging (300)")
      ->type_name("SECONDS")
      ->check(CLI::PositiveNumber);
  command
      .add_option("--max-builds", options.trials.max_builds,
                  "builds to ask for in all; what is not answered by then is said (60)")
      ->type_name("N")
      ->check(CLI::PositiveNumber);
  command
      .add_option("--max-seconds", options.trials.max_seconds,
                  "seconds to ask for in all; what is not answered by then is said (300)")
      ->type_name("SECONDS")
      ->check(CLI::PositiveNumber);
  command
      .add_option("--reduce", options.reduce,
                  "ONNX file to write: the smallest part of the model that TensorRT refuses, fails on or crashes with; "
                  "of several the worst, and the others beside it: out.onnx, out.2.onnx ...")
      ->type_name("FILE");
}

void check_truth_options(const ProbeOptions& options) {
  check_libraries(options.trials.libraries);
  if (options.level != "rule") return;
  const auto refuse = [](const char* option) {
    throw Error(fmt::format("{} is about the real TensorRT\nAdd --probe parser or --probe builder", option));
  };
  if (!options.reduce.empty()) refuse("--reduce");
  if (!options.trials.libraries.empty()) refuse("--plugin-lib");
  if (options.trials.plugin_override) refuse("--plugin-override");
  if (!options.shapes.empty()) refuse("--shapes");
}

ProbeAnswer ask_tensorrt(const Console& console, const Model& model, const ProbeOptions& options,
                         std::vector<inspect::NodeVerdict>& nodes) {
  const inspect::ProbeOptions question{
      .level = level_of(options.level), .trials = options.trials, .shapes = options.shapes, .reduce = options.reduce};
  const DeferInterrupts defer;
  Progress progress(console);
  inspect::ProbeAnswer found;
  try {
    found = inspect::probe_verdicts(model, question, trial_callbacks(console, progress), nodes);
  } catch (const EngineError& error) {
    progress.clear();
    throw with_options_of_this_program(error);
  }
  if (!options.reduce.empty() && found.reduced.empty()) {
    warn_of_no_failure(console, options.reduce, question.level, nodes);
  }
  ProbeAnswer answer;
  answer.facts["truth"] = inspect::name_of(found.level);
  answer.facts["tensorrt"] = {
      {"flavor", found.tensorrt.flavor}, {"module", found.tensorrt.module}, {"version", found.tensorrt.version}};
  answer.facts["trials"] = {{"parses", found.trials.parses},
                            {"builds", found.trials.builds},
                            {"processes", found.trials.processes},
                            {"seconds", found.trials.seconds}};
  answer.facts["reduced"] = json_of_reduced(found.reduced);
  answer.facts["unanswered"] = found.unanswered;
  answer.facts["pieces"] = found.pieces;
  add_lines(console, found, answer.lines);
  return answer;
}

}  // namespace graft::cli

// Composes the results of the steps from what their commands print.
#include "present/text/auto_text.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <utility>

#include "core/shell_quoted.hpp"
#include "present/text/convert_text.hpp"
#include "present/text/model_text.hpp"
#include "present/text/next_steps_text.hpp"
#include "present/text/quantize_text.hpp"
#include "present/text/value_check_text.hpp"
#include "present/text/verify_text.hpp"

namespace graft::present {
namespace {

using report::AutoReport;
using report::AutoStep;
using report::NextCommand;
using report::StepState;

std::string convert_found(const report::ConvertReport& report, bool is_good) {
  if (is_good) return summary_text(report);
  std::vector<std::string> lines = rule_errors(report);
  for (const report::NodeSupport& node : report.nodes) {
    if (!report::is_bad(node.support)) continue;
    lines.push_back(
        fmt::format("{}: {}{}{}", describe(node.node), node.reason, node.advice.empty() ? "" : "; ", node.advice));
  }
  return fmt::format("{}", fmt::join(lines, "\n"));
}

std::string verify_found(const report::VerifyReport& report, bool is_good) {
  if (!is_good) return missed_check_text({.report = report}, "the network");
  std::string text =
      fmt::format("{}: {} on {}, computed by {}", models_verdict_text(report), count_text(report.runs, "run"),
                  report.has_data ? "the given data" : "synthetic inputs", report.ran_in);
  for (const std::string& line : definition_lines(report)) text += "\n" + line;
  if (report.accuracy && report.accuracy->samples != 0) text += "\n" + accuracy_text(*report.accuracy);
  return text;
}

/// Returns the result of the quantization, and the figures of the outputs.
std::string quantize_found(const report::QuantizeReport& report) {
  constexpr std::size_t most_outputs = 4;
  std::string text = quantize_summary(report);
  for (std::size_t i = 0; i < std::min(most_outputs, report.outputs.size()); ++i) {
    text +=
        fmt::format("\noutput '{}', compared with f32: {}", report.outputs[i].name, quality_text(report.outputs[i]));
  }
  if (report.outputs.size() > most_outputs) {
    text += fmt::format("\n{} more outputs are in the report", report.outputs.size() - most_outputs);
  }
  if (report.is_metric_accuracy && report.metric_f32 && report.metric_int8) {
    text += fmt::format("\n{}: {:.1f} % in f32, {:.1f} % in {}, of {}", metric_name(report), *report.metric_f32,
                        *report.metric_int8, to_string(report.precision),
                        count_text(static_cast<std::size_t>(report.judged), "sample"));
  }
  return text;
}

std::string build_found(const report::BuildReport& report) {
  // TensorRT fuses the layers of the network into fewer kernels.
  const std::string kernels = !report.layers || report.layers->layers.empty()
                                  ? ""
                                  : fmt::format(" in {}", count_text(report.layers->layers.size(), "kernel"));
  return fmt::format("{}, {} layers{}, {}, {}", bytes_text(report.bytes), report.layer_count(), kernels,
                     report.plugins().empty() ? "all native" : count_text(report.plugins().size(), "plugin"),
                     report.tensorrt.title());
}

void add_lines(Table& table, const Cell& mark, const std::string& name, const std::string& text) {
  std::size_t begin = 0;
  while (begin <= text.size()) {
    const std::size_t end = std::min(text.find('\n', begin), text.size());
    const bool is_first = begin == 0;
    table.add({is_first ? mark : Cell(), is_first ? name : "", text.substr(begin, end - begin)});
    begin = end + 1;
  }
}

}  // namespace

std::string found_text(const AutoReport& report, const AutoStep& step) {
  const bool is_good = step.state == StepState::done;
  if (!is_good && step.state != StepState::negative) return "";
  if (!step.why.empty()) return step.why;
  if (step.name == "convert" && report.convert) return convert_found(*report.convert, is_good);
  if (step.name == "verify" && report.verify) return verify_found(*report.verify, is_good);
  if (step.name == "quantize" && report.quantize) {
    return is_good ? quantize_found(*report.quantize) : missed_limit_text(*report.quantize);
  }
  return report.build ? build_found(*report.build) : "";
}

Table step_table(const AutoReport& report, const AutoStep& step) {
  Table table;
  if (step.state == StepState::not_needed) {
    table.add({{"-", Color::faint}, step.name, "not needed: " + step.why});
  } else {
    add_lines(table, {"ok", Color::good}, step.name, found_text(report, step));
  }
  return table;
}

std::vector<std::string> step_warnings(const AutoReport& report, const AutoStep& step) {
  if (step.name == "convert" && report.convert) return report.convert->all_warnings();
  if (step.name == "verify" && report.verify) return verify_warnings(*report.verify);
  if (step.name == "quantize" && report.quantize) return report.quantize->notes;
  if (step.name != "build" || !report.build) return {};
  std::vector<std::string> warnings = report.build->notes;
  for (const std::string& warning : report.build->tensorrt_warnings) warnings.push_back("TensorRT: " + warning);
  return warnings;
}

std::string targets_text(const AutoReport& report) {
  return fmt::format(
      "{}: {}", report.targets.empty() ? "all GPUs from Ampere on" : fmt::format("{}", fmt::join(report.targets, ", ")),
      report.why_targets);
}

Table checks_table(const AutoReport& report) {
  Table table;
  for (const report::EngineCheck& check : report.checks) {
    const Cell mark = !check.passed   ? Cell("?", Color::caution)
                      : *check.passed ? Cell("ok", Color::good)
                                      : Cell("no", Color::bad);
    add_lines(table, mark, check.name, check.found);
  }
  return table;
}

std::vector<NextCommand> next_commands(const AutoReport& report) {
  std::vector<NextCommand> commands;
  if (report.build) {
    const bool has_wrong_types = std::ranges::any_of(report.checks, [](const report::EngineCheck& check) {
      return check.name == "types" && !check.passed.value_or(true);
    });
    if (has_wrong_types) {
      commands.push_back({report.steps.back().command, "lists the kernels with the types that they read and write"});
    }
    if (auto canary = canary_of_own_plugins(*report.build)) commands.push_back(*std::move(canary));
    return commands;
  }
  const AutoStep* negative = report.negative_step();
  // A step without a command did not run, and its message has the next commands.
  if (negative == nullptr || negative->command.empty()) return commands;
  if (negative->name == "convert") {
    if (report.convert) return next_commands(*report.convert);
    return {{fmt::format("graft inspect {}{}", shell_path(report.model), library_options()),
             "lists the nodes that do not run, with the reasons"}};
  }
  if (negative->name == "verify") {
    commands.push_back({negative->command + " --layers", "finds the first node that differs"});
  } else if (negative->name == "quantize") {
    commands.push_back({negative->command + " --explain", "lists the type of each node, with the reason"});
  } else if (report.convert) {
    const std::filesystem::path model = report.quantize ? report.quantize->output : report.convert->output.string();
    commands.push_back({fmt::format("graft inspect {}{}", shell_path(model), library_options()),
                        "judges each node with TensorRT, and names the part that it refuses"});
  }
  for (const AutoStep& step : report.steps) {
    if (step.state == StepState::not_reached && !step.command.empty()) {
      commands.push_back({step.command, "continues without this check"});
    }
  }
  return commands;
}

}  // namespace graft::present

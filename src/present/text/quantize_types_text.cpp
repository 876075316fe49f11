// Writes the nodes and outputs of a model in f16 or bf16.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <string>
#include <system_error>
#include <utility>

#include "onnx/node_ref.hpp"
#include "present/html/quantize_page.hpp"
#include "present/text/next_steps_text.hpp"
#include "present/text/quantize_text.hpp"
#include "present/text/shell_quoted.hpp"
#include "present/text/value_check_text.hpp"
#include "present/text/verify_text.hpp"

namespace graft::present {
namespace {

void add_nodes(Listing& text, const quant::ChosenTypes& chosen, verify::Precision precision, bool explain) {
  Table table;
  constexpr std::size_t widest = 60;
  for (const quant::ChosenNode& node : chosen.nodes) {
    const bool is_kept = node.node.type == quant::NodeType::kept;
    if (!is_kept && !explain) continue;
    const bool by_numbers = is_kept && node.why != quant::WhyKept::form && node.why != quant::WhyKept::asked;
    table.add({{type_name(node.node, precision), by_numbers ? Color::caution : Color::none},
               shortened(onnx::describe(node.node.node), widest),
               {explanation(node), is_kept ? Color::none : Color::faint}});
  }
  if (table.empty()) return;
  text.add("");
  text.add(explain ? "Nodes" : "In f32");
  text.add(std::move(table));
}

void add_outputs(Listing& text, const quant::ChosenTypes& chosen, verify::Precision precision) {
  Table table;
  for (std::size_t i = 0; i < chosen.outputs.size(); ++i) {
    const std::string is = quality_text(chosen.outputs[i]);
    const std::string was = quality_text(chosen.plain[i]);
    table.add({{chosen.outputs[i].name, Color::strong}, is});
    if (is != was) table.add({"", {fmt::format("all in {}: {}", to_string(precision), was), Color::faint}});
  }
  text.add("");
  text.add(fmt::format("Outputs, compared with the f32 network on the CPU{}",
                       chosen.runs > 1 ? fmt::format(", the worst of {} runs", chosen.runs) : ""));
  text.add(std::move(table));
}

}  // namespace

std::string types_summary(const toolkit::TypesReport& report, verify::Precision precision) {
  const quant::ChosenTypes& chosen = report.chosen;
  const auto count = [&](quant::NodeType type) {
    return static_cast<std::size_t>(
        std::count_if(chosen.nodes.begin(), chosen.nodes.end(),
                      [type](const quant::ChosenNode& node) { return node.node.type == type; }));
  };
  const onnx::ElementType narrow = quant::element_type_of(precision);
  std::map<onnx::ElementType, std::size_t> before;
  for (const quant::ChosenNode& node : chosen.nodes) {
    if (node.node.before) ++before[*node.node.before];
  }
  const std::size_t already = before[narrow];
  std::string others;
  for (const auto& [type, nodes] : before) {
    if (type != narrow) others += fmt::format(", {} in {} as before", nodes, to_string(type));
  }
  return fmt::format("{} in {}{}, {} kept in f32{}, {}, {} of weights ({} before)",
                     count_text(count(quant::NodeType::narrow) + already, "node"), to_string(precision),
                     already == 0 ? "" : fmt::format(" ({} of them before)", already),
                     count(quant::NodeType::kept) + count(quant::NodeType::follows), others,
                     count_text(chosen.typed.casts, "cast"), bytes_text(report.weights.after),
                     bytes_text(report.weights.before));
}

Listing types_text(const toolkit::TypesReport& report, verify::Precision precision, bool has_data, bool explain) {
  const quant::ChosenTypes& chosen = report.chosen;
  Listing text;
  add_nodes(text, chosen, precision, explain);
  for (const quant::AdjustedConstant& constant : chosen.typed.adjusted) {
    text.add(fmt::format("note: the constant '{}': {}", constant.name, constant.change));
  }
  for (const std::string& note : chosen.notes) text.add("note: " + note);
  add_outputs(text, chosen, precision);
  if (!has_data) {
    text.add(fmt::format("based on synthetic inputs ({}); real inputs may have a wider range: use --data",
                         fmt::join(chosen.inputs, ", ")));
  }
  return text;
}

std::string missed_types_text(const toolkit::TypesReport& report, const std::string& verify) {
  const std::string next =
      verify.empty() ? "" : fmt::format("\n`{} --layers` shows the first node that differs", verify);
  if (report.chosen.met) {
    const bool differs = report.check.report && report.check.report->verdict() == report::Verdict::different;
    return missed_check_text(report.check, "the f32 model") + (differs ? next : "");
  }
  return fmt::format(
      "an output has a signal-to-noise ratio below {:g} dB, and keeping more nodes in f32 does not help\n--limit sets "
      "the required signal-to-noise ratio{}",
      report.chosen.limit_db, next);
}

std::string verify_command(const toolkit::ValueCheck& check, const std::string& model, const std::string& output,
                           const std::vector<std::string>& data, const std::vector<std::string>& inputs) {
  if (!check.can_be_repeated()) return "";
  std::string command = fmt::format("graft verify {} {}", shell_path(model), shell_path(output));
  for (const std::string& tensor : data) {
    std::error_code problem;
    if (std::filesystem::is_directory(tensor, problem)) return "";
    command += " --data " + shell_argument(tensor);
  }
  for (const std::string& input : inputs) command += " --input " + shell_argument(input);
  if (check.limit_db) command += fmt::format(" --snr {:g}", *check.limit_db);
  return command + library_options();
}

}  // namespace graft::present

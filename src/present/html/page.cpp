// Creates pages and the facts at their beginning.
#include "present/html/page.hpp"

#include <fmt/format.h>

#include <array>
#include <cstdint>
#include <filesystem>
#include <string_view>
#include <utility>

#include "core/report_date.hpp"
#include "core/verdict_groups.hpp"
#include "graft/setting.hpp"
#include "present/text/table.hpp"

namespace graft::present {
namespace {

/// Returns a large number with three digits: "2.51 G".
std::string amount_text(std::uint64_t amount) {
  constexpr double step = 1000;
  constexpr auto units = std::to_array<std::string_view>({"", " k", " M", " G", " T", " P", " E"});
  if (amount < 1000) return fmt::format("{}", amount);
  auto value = static_cast<double>(amount);
  std::size_t unit = 0;
  while (value >= step - 0.5 && unit + 1 < units.size()) {
    value /= step;
    ++unit;
  }
  return fmt::format("{:.3g}{}", value, units.at(unit));
}

html::Cell count_cell(const std::optional<std::uint64_t>& count) {
  return count ? html::Cell(static_cast<double>(*count)) : html::Cell();
}

}  // namespace

html::Report new_report(std::string command, std::string title) {
  html::Report report;
  report.command = std::move(command);
  report.version = GRAFT_VERSION;
  report.date = report_date();
  report.title = std::move(title);
  return report;
}

html::Report new_model_report(std::string command, const std::string& file) {
  html::Report report = new_report(std::move(command), std::filesystem::path(file).filename().string());
  report.summary.push_back({"file", file});
  return report;
}

void add_ends(html::Report& report, const report::ModelGraph& graph) {
  // A symbolic size that a network computes from the sizes of its inputs can be a long expression.
  constexpr std::size_t longest = 70;
  const auto shortened = [](const std::string& type) {
    return type.size() <= longest ? type : type.substr(0, longest) + "…";
  };
  const auto add = [&](const char* side, const std::vector<report::ModelValue>& values) {
    for (const report::ModelValue& value : values) {
      report.summary.push_back({side, fmt::format("{}: {}", value.name, shortened(value.type))});
    }
  };
  add("input", graph.inputs);
  add("output", graph.outputs);
}

void add_problems(html::Report& report, const std::vector<report::NodeSupport>& nodes,
                  const std::vector<std::optional<html::Place>>& places) {
  const report::VerdictGroups groups = report::group_verdicts(nodes, false);
  for (const report::VerdictGroup& group : groups.problems) {
    html::Problem problem{.title = {},
                          .kind = to_string(group.first().support),
                          .reason = group.first().reason,
                          .advice = group.first().advice};
    for (const auto& [op, count] : report::count_operators(group)) {
      problem.title += fmt::format("{}{} {}", problem.title.empty() ? "" : ", ", count, op);
    }
    if (const std::size_t reasons = report::count_reasons(group); reasons > 1) {
      problem.reason += fmt::format("; the nodes have {} reasons, and this is the first", reasons);
    }
    for (const report::NodeSupport* node : group.nodes) {
      const auto& place = places.at(static_cast<std::size_t>(node - nodes.data()));
      if (place) problem.nodes.push_back(*place);
    }
    report.problems.push_back(std::move(problem));
  }
}

void add_warnings(html::Report& report, const std::vector<std::string>& warnings) {
  for (const std::string& warning : warnings) {
    report.problems.push_back({.title = "Warning", .kind = {}, .reason = warning, .advice = {}});
  }
}

std::string nodes_verdict(const std::vector<report::NodeSupport>& nodes, bool by_rules) {
  std::size_t all = 0;
  std::size_t bad = 0;
  std::size_t open = 0;
  std::size_t lowered = 0;
  for (const report::NodeSupport& node : nodes) {
    if (report::is_mere_constant(node)) continue;
    ++all;
    bad += report::is_bad(node.support) ? 1 : 0;
    open += report::is_open(node.support) ? 1 : 0;
    lowered += node.support == report::Support::lowered ? 1 : 0;
  }
  const std::string judge = by_rules ? "By Graft's rules, " : "";
  const auto sentence = [&](std::string text) {
    if (judge.empty() && !text.empty() && text[0] >= 'a' && text[0] <= 'z')
      text[0] = static_cast<char>(text[0] - 'a' + 'A');
    return judge + text + ".";
  };
  if (bad != 0) {
    return sentence(fmt::format("{} of {} {} not run in TensorRT{}", bad, count_text(all, "node"),
                                bad == 1 ? "does" : "do",
                                open == 0 ? "" : fmt::format(", and it is unknown whether {} more run", open)));
  }
  if (open != 0) {
    return sentence(fmt::format("it is unknown whether {} of {} {} in TensorRT", open, count_text(all, "node"),
                                open == 1 ? "runs" : "run"));
  }
  return sentence(fmt::format("all {} run in TensorRT{}", count_text(all, "node"),
                              lowered == 0 ? "" : fmt::format(", {} of them after graft convert", lowered)));
}

std::string cost_text(const report::NetworkCost& cost) {
  const bool is_partial = cost.nodes_without_macs != 0;
  std::string text = is_partial && cost.macs == 0
                         ? "an unknown number of multiply-accumulates"
                         : fmt::format("{} multiply-accumulates in one run", amount_text(cost.macs));
  if (is_partial) {
    text += fmt::format("{} {} with sizes that are not fixed ({} fixes those of inputs) or with an unknown operator",
                        cost.macs == 0 ? ":" : ", without", count_text(cost.nodes_without_macs, "node"),
                        setting_name(Setting::input_shapes));
  }
  return fmt::format("{}; {} parameters", text, amount_text(cost.parameters));
}

std::vector<html::Column> cost_columns() {
  using Type = html::Column::Type;
  return {{"MACs", Type::number, report::NodeCost::macs_meaning},
          {"parameters", Type::number, report::NodeCost::parameters_meaning},
          {"weight bytes", Type::number, report::NodeCost::weight_bytes_meaning},
          {"tensor bytes", Type::number, report::NodeCost::tensor_bytes_meaning}};
}

std::vector<html::Cell> cost_cells(const report::NodeCost& cost) {
  return {count_cell(cost.macs), count_cell(cost.parameters), count_cell(cost.weight_bytes),
          count_cell(cost.tensor_bytes)};
}

std::string cost_note() {
  return "MACs are the multiply-accumulates of one run: the products that a convolution, a matrix product, a recurrent "
         "layer or an attention sums. Parameters are the elements of the weights that the node computes with. Weight "
         "bytes are those of all constants that it reads, tensor bytes those of the other tensors that it reads and "
         "writes. A field is empty where a size is not fixed.";
}

html::Cell node_cell(const std::optional<html::Place>& place, const std::string& name) {
  return place ? html::Cell(*place) : html::Cell(name);
}

}  // namespace graft::present

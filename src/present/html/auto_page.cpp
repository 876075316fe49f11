// Appends the pages of the steps: graphs and distributions get new indices, and kinds get the name of the step, because
// pages have different kinds with the same key.
#include "present/html/auto_page.hpp"

#include <fmt/format.h>

#include <string>
#include <utility>
#include <variant>

#include "core/atomic_file.hpp"
#include "present/html/convert_page.hpp"
#include "present/html/page.hpp"
#include "present/html/quantize_page.hpp"
#include "present/html/verify_page.hpp"
#include "present/json/auto_json.hpp"
#include "present/text/auto_text.hpp"
#include "present/text/quantize_text.hpp"

namespace graft::present {
namespace {

using Type = html::Column::Type;

/// Appends the page of a step of `graft auto` to the page of the whole command.
class Appending {
 public:
  Appending(html::Report& page, std::string step)
      : page_(page),
        step_(std::move(step)),
        first_graph_(page.graphs.size()),
        first_distribution_(page.distributions.size()) {}

  void append(html::Report part) {
    for (html::Kind& kind : part.kinds) {
      kind.key = key_of(kind.key);
      page_.kinds.push_back(std::move(kind));
    }
    for (html::Problem& problem : part.problems) {
      problem.kind = key_of(problem.kind);
      problem.title = title_of(problem.title);
      for (html::Place& place : problem.nodes) place.graph += first_graph_;
      page_.problems.push_back(std::move(problem));
    }
    for (html::Group& group : part.groups) {
      for (html::Place& place : group.nodes) place.graph += first_graph_;
      page_.groups.push_back(std::move(group));
    }
    if (part.compared && !page_.compared) {
      page_.compared = html::Comparison{.before = part.compared->before + first_graph_,
                                        .after = part.compared->after + first_graph_};
    }
    for (html::Graph& graph : part.graphs) {
      graph.title = title_of(graph.title);
      for (html::Node& node : graph.nodes) move(node);
      page_.graphs.push_back(std::move(graph));
    }
    for (html::Distribution& distribution : part.distributions) page_.distributions.push_back(std::move(distribution));
    for (html::Section& section : part.sections) {
      std::visit(
          [&](auto& each) {
            each.title = title_of(each.title);
            move(each);
          },
          section);
      page_.sections.push_back(std::move(section));
    }
  }

 private:
  [[nodiscard]] std::string key_of(const std::string& key) const { return key.empty() ? "" : step_ + "_" + key; }
  [[nodiscard]] std::string title_of(const std::string& title) const { return fmt::format("{}: {}", step_, title); }

  void move(html::Node& node) const {
    node.kind = key_of(node.kind);
    for (std::size_t& graph : node.graphs) graph += first_graph_;
    if (node.distribution) *node.distribution += first_distribution_;
  }
  void move(html::Table& table) const {
    for (auto& row : table.rows) {
      for (std::size_t column = 0; column < row.size(); ++column) {
        html::Cell& cell = row[column];
        if (auto* place = std::get_if<html::Place>(&cell)) place->graph += first_graph_;
        if (auto* at = std::get_if<html::DistributionAt>(&cell)) at->index += first_distribution_;
        auto* text = std::get_if<std::string>(&cell);
        if (text != nullptr && table.columns[column].type == Type::kind) *text = key_of(*text);
      }
    }
  }
  void move(html::Histogram& histogram) const {
    for (html::Histogram::Bin& bin : histogram.bins) bin.kind = key_of(bin.kind);
  }
  void move(html::BarChart& /*chart*/) const {}
  void move(html::Scatter& /*scatter*/) const {}

  html::Report& page_;
  std::string step_;
  std::size_t first_graph_;
  std::size_t first_distribution_;
};

}  // namespace

namespace {

std::string verdict_of(const report::AutoReport& report) {
  if (report.succeeded()) {
    std::string not_possible;
    for (const report::EngineCheck& check : report.checks) {
      if (!check.passed)
        not_possible += fmt::format("{}{} ({})", not_possible.empty() ? "" : ", ", check.name, check.found);
    }
    return not_possible.empty()
               ? "The engine exists, and every check passed."
               : fmt::format("The engine exists, and every check that was possible passed. Not possible: {}.",
                             not_possible);
  }
  if (report.build) return "The engine exists, and a check failed.";
  const report::AutoStep* const step = report.negative_step();
  return step == nullptr ? "There is no engine."
                         : fmt::format("There is no engine: {} has a negative result.", step->name);
}

}  // namespace

html::Report auto_page(const report::AutoReport& report) {
  html::Report page = new_model_report("auto", report.model.string());
  page.summary.push_back({"engine", report.build ? report.engine.string() : "not built"});
  if (report.quantize) {
    for (const report::OutputFigures& output : report.quantize->outputs) {
      page.summary.push_back({fmt::format("{} in {}", output.name, to_string(report.quantize->precision)),
                              fmt::format("compared with f32: {}", quality_text(output))});
    }
  }
  if (!report.why_targets.empty()) page.summary.push_back({"built for", targets_text(report)});
  html::Table steps{.title = "Steps",
                    .columns = {{"step", Type::text},
                                {"state", Type::text},
                                {"found", Type::text},
                                {"seconds", Type::number},
                                {"command", Type::code}}};
  for (const report::AutoStep& step : report.steps) {
    const std::string found = found_text(report, step);
    steps.rows.push_back(
        {step.name, std::string(to_string(step.state)), found.empty() ? step.why : found, step.seconds, step.command});
  }
  page.sections.emplace_back(std::move(steps));
  html::Table checks{.title = "Checks of the engine",
                     .columns = {{"check", Type::text}, {"passed", Type::text}, {"found", Type::text}}};
  for (const report::EngineCheck& check : report.checks) {
    checks.rows.push_back({check.name,
                           std::string(!check.passed   ? "not possible"
                                       : *check.passed ? "yes"
                                                       : "no"),
                           check.found});
  }
  if (!checks.rows.empty()) page.sections.emplace_back(std::move(checks));
  page.next = next_commands(report);
  page.verdict = verdict_of(report);
  if (const report::AutoStep* step = report.negative_step()) {
    page.problems.push_back(
        {.title = step->name, .kind = {}, .reason = found_text(report, *step), .advice = step->command});
  }
  for (const report::EngineCheck& check : report.checks) {
    if (check.passed.value_or(true)) continue;
    page.problems.push_back({.title = "check of the " + check.name, .kind = {}, .reason = check.found, .advice = {}});
  }
  if (report.convert) Appending(page, "convert").append(convert_page(*report.convert));
  if (report.verify) Appending(page, "verify").append(verify_page(*report.verify));
  if (report.quantize) {
    page.opens = page.graphs.size();
    Appending(page, "quantize").append(quantize_page(*report.quantize));
  }
  if (page.opens && *page.opens >= page.graphs.size()) page.opens.reset();
  return page;
}

std::filesystem::path write_auto(const report::AutoReport& report, const std::string& command_line) {
  const std::filesystem::path file = report.folder / "report.html";
  html::Report page = auto_page(report);
  page.command_line = command_line;
  write_file(file, html_of(page));
  write_file(report.folder / "report.json",
             auto_json(report).dump(2, ' ', false, Json::error_handler_t::replace) + "\n");
  return file;
}

}  // namespace graft::present

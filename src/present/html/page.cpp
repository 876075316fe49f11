// Creates pages and the facts at their beginning.
#include "present/html/page.hpp"

#include <fmt/format.h>

#include <filesystem>
#include <utility>

namespace graft::present {

html::Report new_report(std::string command, std::string title) {
  html::Report report;
  report.command = std::move(command);
  report.version = GRAFT_VERSION;
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

html::Cell node_cell(const std::optional<html::Place>& place, const std::string& name) {
  return place ? html::Cell(*place) : html::Cell(name);
}

}  // namespace graft::present

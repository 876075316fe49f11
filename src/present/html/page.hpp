// Functions that the pages of all commands share.
#pragma once

#include <optional>
#include <string>

#include "graft/report/graph.hpp"
#include "present/html/report.hpp"

namespace graft::present {

[[nodiscard]] html::Report new_report(std::string command, std::string title);
/// Returns a report with the file's name as its title and the file's path as its first fact.
[[nodiscard]] html::Report new_model_report(std::string command, const std::string& file);
/// Adds a fact for each input and output of a graph: "input  image: f32[1, 3, 224, 224]".
void add_ends(html::Report& report, const report::ModelGraph& graph);
/// Returns a cell for a column of nodes: the place of the node, or its name if the node is not drawn.
[[nodiscard]] html::Cell node_cell(const std::optional<html::Place>& place, const std::string& name);

}  // namespace graft::present

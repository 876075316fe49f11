// Functions that the pages of all commands share.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "graft/report/graph.hpp"
#include "graft/report/inspect.hpp"
#include "graft/report/node_cost.hpp"
#include "present/html/report.hpp"

namespace graft::present {

[[nodiscard]] html::Report new_report(std::string command, std::string title);
/// Returns a report with the file's name as its title and the file's path as its first fact.
[[nodiscard]] html::Report new_model_report(std::string command, const std::string& file);
/// Adds a fact for each input and output of a graph: "input  image: f32[1, 3, 224, 224]".
void add_ends(html::Report& report, const report::ModelGraph& graph);
/// Adds a problem for each group of nodes with the same operator that do not run, may not run, or compute wrong values.
/// `places` has the place of each node.
void add_problems(html::Report& report, const std::vector<report::NodeSupport>& nodes,
                  const std::vector<std::optional<html::Place>>& places);
/// Adds each warning as a problem without nodes.
void add_warnings(html::Report& report, const std::vector<std::string>& warnings);
/// Returns a sentence about how many nodes run: "All 133 nodes run in TensorRT, 3 of them after graft convert.".
/// `by_rules`: TensorRT was not run.
[[nodiscard]] std::string nodes_verdict(const std::vector<report::NodeSupport>& nodes, bool by_rules);
/// Returns the work of a network: "2.51 G multiply-accumulates in one run, without 3 nodes with sizes that are not
/// fixed", and the number of its parameters.
[[nodiscard]] std::string cost_text(const report::NetworkCost& cost);
/// Returns the columns for the work and the memory of a node. cost_cells() returns the cells of a node in these
/// columns.
[[nodiscard]] std::vector<html::Column> cost_columns();
[[nodiscard]] std::vector<html::Cell> cost_cells(const report::NodeCost& cost);
/// Returns a sentence that explains the columns of cost_columns(), for screens without a mouse pointer, which cannot
/// show the explanation of each column.
[[nodiscard]] std::string cost_note();

/// Returns a cell for a column of nodes: the place of the node, or its name if the node is not drawn.
[[nodiscard]] html::Cell node_cell(const std::optional<html::Place>& place, const std::string& name);

}  // namespace graft::present

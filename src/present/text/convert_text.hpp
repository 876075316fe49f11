// The report of `graft convert` in words.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "graft/report/convert.hpp"
#include "present/text/table.hpp"

namespace graft::present {

/// Returns a summary: "12 nodes before, 4 after, 3 proofs, 1.2 MB of weights".
[[nodiscard]] std::string summary_text(const report::ConvertReport& report);

/// Returns the time of each step: "read in 0.01 s, ...".
[[nodiscard]] std::string timings_text(const report::ConvertReport& report);

/// Returns the rewrites of each pass. Rewrites with the same replacement share a line, and a cleanup pass only has the
/// number of its changes. If `verbose`, every rewrite has a line.
[[nodiscard]] Table rewrites_table(const report::RewriteReport& report, bool verbose);

/// Returns how TensorRT runs nodes of Graft's operators. Nodes of the same operator that run in the same way for the
/// same reason share a line, unless `verbose`.
[[nodiscard]] Table choices_table(const report::RewriteReport& report, bool verbose);

/// Returns the rewrites that one pass applied and the rewrites of this pass that were rejected; an empty table if there
/// are neither.
[[nodiscard]] Table explanation_table(const report::RewriteReport& report, const report::PassSummary& pass);
/// Returns the near misses of patterns, in the order of the report. Unless `verbose`, only the first near miss of each
/// of at most 8 patterns is listed, and only if the pattern is from a user's library or at least half of its nodes
/// matched; the other near misses are counted.
[[nodiscard]] Table near_misses_table(const report::RewriteReport& report, bool verbose);

/// Returns the outcome of each rule, with its reason and notes if `explained`.
[[nodiscard]] Table rules_table(const report::RewriteReport& report, bool explained);

/// Returns a message for each rule that is not optional and matched nothing or was not applied at every match.
[[nodiscard]] std::vector<std::string> rule_errors(const report::RewriteReport& report);

/// Returns the nodes with this verdict. Nodes with the same operator and reason share a row. With `are_on_host`, the
/// nodes were cut off, and the table has no advice.
[[nodiscard]] Table problems_table(const std::vector<report::NodeSupport>& nodes, report::Support verdict,
                                   bool are_on_host = false);
/// Returns the title of problems_table, "2 nodes that neither TensorRT nor Graft runs" or "2 nodes are in the half for
/// the host now"; empty if no node has the verdict.
[[nodiscard]] std::string problems_title(const std::vector<report::NodeSupport>& nodes, report::Support verdict,
                                         bool are_on_host = false);

/// Returns whether the result computes the same values as the given model, or why they were not compared.
[[nodiscard]] std::string values_text(const report::ConvertReport& report);

/// Returns TensorRT's verdict, "TensorRT-RTX 1.7.1.116 builds the result", or why TensorRT did not judge the result.
[[nodiscard]] std::string check_text(const report::ConvertReport& report);

/// Returns the operators that TensorRT runs only after the conversion: "TensorRT runs now what it did not run before: 3
/// DFT, TopK". Begins with "by rule, " if TensorRT was not run. Returns an empty string if there are none (nodes that
/// remain, or that were merged into equal nodes, do not count), or if TensorRT was run and did not build the result.
[[nodiscard]] std::string newly_running_text(const report::ConvertReport& report);

/// Returns the consequences of --no-functions for a file in which this many nodes have no ONNX function.
[[nodiscard]] std::string without_functions_text(std::size_t nodes);

}  // namespace graft::present

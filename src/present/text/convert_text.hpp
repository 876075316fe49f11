// What a conversion did, in words.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "inspect/verdicts.hpp"
#include "passes/report.hpp"
#include "present/text/table.hpp"
#include "toolkit/convert.hpp"

namespace graft::present {

/// "12 nodes before, 4 after, 3 proofs, 1.2 MB of weights".
[[nodiscard]] std::string summary_text(const toolkit::Conversion& conversion);

/// "read in 0.01 s, ...".
[[nodiscard]] std::string timings_text(const toolkit::Conversion& conversion);

/// Of the passes that tidy up, how much they did; fusions with the same result in one line. Verbose: every rewrite.
[[nodiscard]] Table rewrites_table(const passes::ConvertReport& report, bool verbose);

/// How nodes of Graft run in TensorRT. Those that run alike for the same reason share a line, unless verbose.
[[nodiscard]] Table choices_table(const passes::ConvertReport& report, bool verbose);

/// What one pass did and rejected; empty where it was neither.
[[nodiscard]] Table explanation_table(const passes::ConvertReport& report, const passes::PassSummary& pass);
/// Where patterns came near, in the order of the report. Unless verbose, the nearest place of each pattern that is the
/// user's own or has half of its nodes there, and how many others there are.
[[nodiscard]] Table near_misses_table(const passes::ConvertReport& report, bool verbose);

/// What became of the rules; with the reason and notes of each where they are explained.
[[nodiscard]] Table rules_table(const passes::ConvertReport& report, bool explained);

/// A message for each rule that is not optional and was not done everywhere.
[[nodiscard]] std::vector<std::string> rule_errors(const passes::ConvertReport& report);

/// A warning for each rewrite that was rejected, those of rules apart, which rule_errors has.

/// Nodes with that verdict; those with the same reason and operator in one row.
[[nodiscard]] Table problems_table(const std::vector<inspect::NodeVerdict>& nodes, inspect::Verdict verdict);
/// "2 nodes that neither TensorRT nor Graft runs"; empty where there is none.
[[nodiscard]] std::string problems_title(const std::vector<inspect::NodeVerdict>& nodes, inspect::Verdict verdict);

/// Whether the result computes what the given model computes, or why they were not compared.
[[nodiscard]] std::string values_text(const toolkit::Conversion& conversion);

/// Who judged the result: "TensorRT-RTX 1.7.1.116 builds the result", or why it was not asked.
[[nodiscard]] std::string check_text(const toolkit::Conversion& conversion);

/// "TensorRT runs now what it did not run before: 3 DFT, TopK"; empty where there was nothing, or all of it is left
/// or merged with what is left.
[[nodiscard]] std::string newly_running_text(const toolkit::Conversion& conversion);

/// What a file gains and loses where this many nodes are left without their functions.
[[nodiscard]] std::string without_functions_text(std::size_t nodes);

}  // namespace graft::present

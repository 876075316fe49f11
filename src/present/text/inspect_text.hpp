// The report of `graft inspect` in words.
#pragma once

#include <string>
#include <vector>

#include "graft/report/inspect.hpp"
#include "present/text/listing.hpp"

namespace graft::present {

/// Returns the name of the operator that replaces the nodes of a fusion: "InstanceNorm".
[[nodiscard]] std::string operator_of(const report::Fusion& fusion);

/// Returns the fusions by operator: "16 nodes to 8 InstanceNorm".
[[nodiscard]] std::string fusions_text(const std::vector<report::Fusion>& fusions);

/// Returns whether TensorRT or Graft's rules judged the model, and how: "TensorRT-RTX 1.7.1.116 built the model".
[[nodiscard]] std::string answered_by(const report::InspectReport& report);

/// Returns the ranges for which TensorRT built a model, and those for which it did not: " for x=1x4..1x4..1x4, but not
/// for x=1x4..4x4..8x4".
[[nodiscard]] std::string built_shapes_text(const report::ProbeSummary& answer);

/// Returns the model, the number of nodes with each verdict, groups of nodes with problems, the worst first, a few
/// groups of other nodes with a reason, the operators of the remaining nodes, and the next commands. If `all`, every
/// node is listed.
[[nodiscard]] Listing inspect_text(const report::InspectReport& report, bool all);

/// Returns a warning for each node that runs as a plugin with a known problem (NodeSupport::cause).
[[nodiscard]] std::vector<std::string> plugin_warnings(const report::InspectReport& report);

/// Returns whether TensorRT or the rules judged the model. After a probe, also returns the files of failing parts, the
/// parts that were not written, the number of nodes that were not judged, and the counts of parses, builds and
/// processes.
[[nodiscard]] Listing probe_text(const report::InspectReport& report);

/// Returns why --reduce writes nothing to `file`.
[[nodiscard]] std::string nothing_reduced_text(const report::InspectReport& report, const std::string& file);

}  // namespace graft::present

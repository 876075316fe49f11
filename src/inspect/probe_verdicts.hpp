// The verdicts on nodes by rule, corrected by the real TensorRT.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "graft/node_ref.hpp"
#include "inspect/tensorrt_probe.hpp"
#include "inspect/trials.hpp"
#include "inspect/verdicts.hpp"
#include "onnx/model.hpp"

namespace graft::inspect {

struct ProbeOptions {
  ProbeLevel level = ProbeLevel::rule;
  TrialOptions trials;
  std::vector<std::string> shapes;  ///< NAME=MIN..OPT..MAX
  std::string reduce;               ///< A file for the smallest part that fails; empty if none is to be written.
};

/// As many parts are written at most.
inline constexpr std::size_t most_reduced = 20;

/// The smallest part of the model that shows one failure, in a file of its own.
struct SmallestPart {
  std::string file;
  std::size_t node_count = 0;
  std::vector<NodeRef> nodes;          ///< Of the main graph: they fail together.
  std::optional<NodeRef> inside = {};  ///< The one in a branch, a body or the function of `nodes` that fails.
  std::vector<NodeRef> alike = {};     ///< Nodes that fail alike, and were not asked about.
  Outcome outcome = Outcome::refused;
  std::vector<std::string> shapes;  ///< NAME=MIN..OPT..MAX of its inputs.

  [[nodiscard]] const NodeRef& failing_node() const { return inside ? *inside : nodes.front(); }
};

struct ProbeAnswer {
  ProbeLevel level = ProbeLevel::rule;
  TensorRTIdentity tensorrt = {};
  TrialSummary trials = {};
  std::size_t unanswered = 0;  ///< Nodes about which the budget allowed no answer.
  std::size_t pieces = 0;      ///< In which the builder took what it takes; 1 where that was built together.
  std::vector<SmallestPart> reduced = {};  ///< Of each failure, the worst first.
  std::vector<NodeRef> not_reduced = {};   ///< Of the failures beyond most_reduced.
};

[[nodiscard]] Verdict verdict_of(Outcome outcome);
/// Returns "TensorRT's parser refuses it".
[[nodiscard]] std::string_view what_happened(Outcome outcome);

/// Asks TensorRT about a model, changes the verdicts, and writes the smallest parts. `nodes` are those of judge_nodes
/// for the same model. Throws EngineError where TensorRT does not start, Error for shapes that do not fit the model.
[[nodiscard]] ProbeAnswer probe_verdicts(const onnx::Model& model, const ProbeOptions& options,
                                         const TrialCallbacks& callbacks, std::vector<NodeVerdict>& nodes);

}  // namespace graft::inspect

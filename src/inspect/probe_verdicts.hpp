// The verdicts on nodes by rule, corrected by the real TensorRT.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
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
  /// True: the builder gets the whole model first, for suggested sizes where none were given, and a model for which the
  /// budget allows no build is judged by the parser and the rules.
  bool is_automatic = false;
  bool searches = true;  ///< False, with is_automatic: a model that does not build is not searched for the nodes.
  bool plugins = true;   ///< False: no plugin of Graft's is used, as `graft build --plugins never` builds.
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
  std::size_t unanswered = 0;            ///< Nodes about which the budget allowed no answer.
  std::size_t pieces = 0;                ///< In which the builder took what it takes; 1 where that was built together.
  bool is_built = false;                 ///< The whole model, together.
  std::string not_built = {};            ///< Why it was not, where nothing was found to fail; may be empty.
  std::vector<std::string> shapes = {};  ///< NAME=MIN..OPT..MAX that it was built for.
  std::vector<SmallestPart> reduced = {};  ///< Of each failure, the worst first.
  std::vector<NodeRef> not_reduced = {};   ///< Of the failures beyond most_reduced.
};

[[nodiscard]] Verdict verdict_of(Outcome outcome);
/// Returns "TensorRT's parser refuses it".
[[nodiscard]] std::string_view what_happened(Outcome outcome);

/// Thrown where the TensorRT that an automatic probe would ask is not there, or does not start.
struct NoTensorRT {
  std::string why;
};

/// Starts the process of TensorRT for `probe_verdicts`, and does not wait for it. Throws NoTensorRT if an automatic
/// probe finds no TensorRT, and Error (missing_tool) if another probe finds none.
[[nodiscard]] std::unique_ptr<DriverTrials> start_tensorrt(const ProbeOptions& options,
                                                           std::function<bool()> should_stop);

/// Asks TensorRT about a model, changes the verdicts, and writes the smallest parts. `nodes` are those of judge_nodes
/// for the same model. Throws EngineError or NoTensorRT if TensorRT does not start, Error for shapes that do not fit
/// the model, and Interrupted if the process was stopped.
[[nodiscard]] ProbeAnswer probe_verdicts(const onnx::Model& model, const ProbeOptions& options, DriverTrials& trials,
                                         const TrialCallbacks& callbacks, std::vector<NodeVerdict>& nodes);

}  // namespace graft::inspect

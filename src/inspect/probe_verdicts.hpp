// Corrects the verdicts by rule with the answers of the real TensorRT.
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
  /// Whether the builder gets the whole model first, with suggested sizes where none are given. A model that the budget
  /// does not allow to build is then judged by the parser and the rules.
  bool is_automatic = false;
  bool searches = true;  ///< Whether an automatic probe searches a model that does not build for the failing nodes.
  bool plugins = true;   ///< Whether Graft's plugins may be used; false matches `graft build --plugins never`.
  TrialOptions trials;
  std::vector<std::string> shapes;  ///< NAME=MIN..OPT..MAX
  std::string reduce;               ///< File for the smallest failing part; empty if no part is to be written.
};

/// The maximum number of parts that are written.
inline constexpr std::size_t most_reduced = 20;

/// The smallest part of the model that shows one failure, in a file of its own.
struct SmallestPart {
  std::string file;
  std::size_t node_count = 0;
  std::vector<NodeRef> nodes;          ///< Nodes of the main graph that fail together.
  std::optional<NodeRef> inside = {};  ///< The failing node in a branch, a body or the function of `nodes`.
  std::vector<NodeRef> alike = {};     ///< Nodes that fail in the same way and were not probed.
  Outcome outcome = Outcome::refused;
  std::vector<std::string> shapes;  ///< Ranges of the part's inputs, as NAME=MIN..OPT..MAX.

  [[nodiscard]] const NodeRef& failing_node() const { return inside ? *inside : nodes.front(); }
};

struct ProbeAnswer {
  ProbeLevel level = ProbeLevel::rule;
  TensorRTIdentity tensorrt = {};
  TrialSummary trials = {};
  std::size_t unanswered = 0;  ///< Number of nodes for which the budget allowed no answer.
  /// Number of parts in which the builder built all accepted nodes; 1 if it built them together.
  std::size_t pieces = 0;
  bool is_built = false;  ///< Whether the whole model was built as one engine.
  /// Why the model was not built although no node was found to fail; may be empty.
  std::string not_built = {};
  std::vector<std::string> shapes = {};  ///< Ranges for which the model was built, as NAME=MIN..OPT..MAX.
  /// Sets of ranges for which the model did not build, each as "NAME=MIN..OPT..MAX, NAME=MIN..OPT..MAX".
  std::vector<std::string> failing_shapes = {};
  std::vector<SmallestPart> reduced = {};  ///< The smallest part of each failure, the worst first.
  std::vector<NodeRef> not_reduced = {};   ///< The failing nodes of failures beyond most_reduced.
};

[[nodiscard]] Verdict verdict_of(Outcome outcome);
/// Returns a clause such as "TensorRT's parser refuses it".
[[nodiscard]] std::string_view what_happened(Outcome outcome);

/// Thrown by an automatic probe that finds no TensorRT, or none that starts.
struct NoTensorRT {
  std::string why;
};

/// Starts the process of TensorRT for `probe_verdicts`, and does not wait for it. Throws NoTensorRT if an automatic
/// probe finds no TensorRT, and Error (missing_tool) if another probe finds none.
[[nodiscard]] std::unique_ptr<DriverTrials> start_tensorrt(const ProbeOptions& options,
                                                           std::function<bool()> should_stop);

/// Probes TensorRT with a model, corrects the verdicts, and writes the smallest parts. `nodes` are those of judge_nodes
/// for the same model. Throws EngineError or NoTensorRT if TensorRT does not start, Error for shapes that do not fit
/// the model, and Interrupted if the process was stopped.
[[nodiscard]] ProbeAnswer probe_verdicts(const onnx::Model& model, const ProbeOptions& options, DriverTrials& trials,
                                         const TrialCallbacks& callbacks, std::vector<NodeVerdict>& nodes);

}  // namespace graft::inspect

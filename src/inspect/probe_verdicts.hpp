// Corrects the verdicts by rule with the results of parsing and building in the installed TensorRT.
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

using report::FailingPart;
using report::ProbeSummary;

struct ProbeOptions {
  Judge level = Judge::rule;  ///< Any value but `automatic`.
  /// Whether the builder gets the whole model first, with suggested sizes for inputs without given sizes. A model that
  /// the budget does not allow to build is then judged by the parser and the rules.
  bool is_automatic = false;
  bool searches = true;  ///< Whether an automatic probe searches a model that does not build for the failing nodes.
  bool plugins = true;   ///< Whether Graft's plugins may be used; false matches `graft build --plugins never`.
  TrialOptions trials;
  std::vector<std::string> shapes;  ///< NAME=MIN..OPT..MAX
  std::string reduce;               ///< File for the smallest failing part; empty if no part is to be written.
};

[[nodiscard]] Support verdict_of(Outcome outcome);

/// Thrown by an automatic probe, for which no TensorRT was named, if it finds none, or none that starts.
struct NoTensorRT {
  std::string why;
};

/// Starts the process of TensorRT for `probe_verdicts`, and does not wait for it. Throws NoTensorRT if an automatic
/// probe finds none, and Error (missing_tool) if another probe finds none, or if the TensorRT that was named is
/// missing.
[[nodiscard]] std::unique_ptr<DriverTrials> start_tensorrt(const ProbeOptions& options,
                                                           std::function<bool()> should_stop);

/// Probes TensorRT with a model, corrects the verdicts, and writes the smallest parts. `nodes` is the result of
/// judge_nodes for the same model. Throws EngineError or NoTensorRT if TensorRT does not start, Error for shapes that
/// do not fit the model, and Interrupted if the process was stopped.
[[nodiscard]] ProbeSummary probe_verdicts(const onnx::Model& model, const ProbeOptions& options, DriverTrials& trials,
                                          const TrialCallbacks& callbacks, std::vector<NodeSupport>& nodes);

}  // namespace graft::inspect

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
  /// Whether to build the whole model first, with suggested sizes for the inputs whose sizes the user did not set. If
  /// the time or the number of builds does not suffice for this build, the verdicts are those of the parser and of the
  /// rules.
  bool is_automatic = false;
  bool searches = true;  ///< Whether an automatic probe searches a model that does not build for the failing nodes.
  bool plugins = true;   ///< Whether Graft's plugins may be used; false matches `graft build --plugins never`.
  TrialOptions trials;
  std::vector<std::string> shapes;  ///< NAME=MIN..OPT..MAX for each input.
  std::string reduce;               ///< File for the smallest failing part; empty if no part is to be written.
};

[[nodiscard]] Support verdict_of(Outcome outcome);

/// Thrown if no TensorRT is found or none starts, by a probe with ProbeOptions::is_automatic whose options name no
/// TensorRT. The caller can then continue with the verdicts of the rules.
struct NoTensorRT {
  std::string why;
};

/// Starts a process that loads TensorRT, for `probe_verdicts`, and returns without waiting for it. `should_stop` is
/// polled: if it returns true, the process is stopped. If no TensorRT is found, throws NoTensorRT if
/// ProbeOptions::is_automatic is set, otherwise Error (missing_tool). Also throws Error (missing_tool) if the TensorRT
/// that the user named is missing.
[[nodiscard]] std::unique_ptr<DriverTrials> start_tensorrt(const ProbeOptions& options,
                                                           std::function<bool()> should_stop);

/// Parses and builds a model with TensorRT in the process of `trials` (the result of start_tensorrt()), and changes the
/// verdicts in `nodes` accordingly. `nodes` must be the result of judge_nodes for the same model. Writes the smallest
/// models that fail if ProbeOptions::reduce is set. Throws EngineError or NoTensorRT if TensorRT does not start, Error
/// for shapes that do not fit the model, and Interrupted if the process was stopped.
[[nodiscard]] ProbeSummary probe_verdicts(const onnx::Model& model, const ProbeOptions& options, DriverTrials& trials,
                                          const TrialCallbacks& callbacks, std::vector<NodeSupport>& nodes);

}  // namespace graft::inspect

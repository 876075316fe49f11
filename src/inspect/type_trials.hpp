// Builds single nodes whose types ONNX does not allow: TensorRT accepts some of them, such as Add of f32 and f64.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>

#include "inspect/probe_verdicts.hpp"
#include "inspect/trials.hpp"
#include "onnx/model.hpp"

namespace graft::inspect {

class TypeTrials {
 public:
  /// `should_stop` ends the process of TensorRT, as in start_tensorrt().
  TypeTrials(ProbeOptions options, std::function<bool()> should_stop);

  /// Returns whether TensorRT builds a node of the main graph by itself; false where no TensorRT starts, or where the
  /// budget is spent. Types must be inferred. Nodes of one operator and the same types are built once, except those
  /// with sub-graphs. All calls must be for one model. Throws Interrupted if the process was stopped.
  [[nodiscard]] bool builds(const onnx::Model& model, const onnx::Node& node);

 private:
  [[nodiscard]] bool build(const onnx::Model& model, const onnx::Node& node);

  ProbeOptions options_;
  std::function<bool()> should_stop_;
  std::unique_ptr<DriverTrials> trials_;            ///< Null until the first node is built.
  std::map<std::string, bool, std::less<>> known_;  ///< Whether each trial_key() builds.
};

}  // namespace graft::inspect

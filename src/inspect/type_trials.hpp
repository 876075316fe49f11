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
  /// The process of TensorRT starts with the first call of builds(). `should_stop` is polled; if it returns true, the
  /// process is stopped.
  TypeTrials(ProbeOptions options, std::function<bool()> should_stop);

  /// Returns whether TensorRT builds a node of the main graph as a model of its own. Returns false if TensorRT does not
  /// start or the budget is used up. Types must have been inferred. Nodes with the same operator and types share one
  /// build, except nodes with sub-graphs. All calls on one object must pass the same model. Throws Interrupted if the
  /// process was stopped.
  [[nodiscard]] bool builds(const onnx::Model& model, const onnx::Node& node);

 private:
  [[nodiscard]] bool build(const onnx::Model& model, const onnx::Node& node);

  ProbeOptions options_;
  std::function<bool()> should_stop_;
  std::unique_ptr<DriverTrials> trials_;            ///< Null until the first node is built.
  std::map<std::string, bool, std::less<>> known_;  ///< The results of builds(), by trial_key().
};

}  // namespace graft::inspect

// Whether the outputs of a run have the shapes that ONNX gives them.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "onnx/model.hpp"
#include "runtime/engine.hpp"

namespace graft::runtime {

/// Compares the shapes that OpenVINO returns with those that shape inference computes from the shapes of the inputs.
///
/// OpenVINO 2026.4 returns outputs of another shape without an error: of some MaxPool and Resize nodes, and, in a
/// process that has one processor, of every node whose sizes do not fit its reading of the operator. Sizes that depend
/// on the inputs' values are not known ahead and are not compared.
class OutputShapes {
 public:
  OutputShapes() = default;
  explicit OutputShapes(std::shared_ptr<const onnx::Model> model) : model_(std::move(model)) {}

  /// Throws EngineLimit, naming the output and both shapes, where a tensor in `outputs` has another shape than these
  /// `inputs` lead to. `outputs` may hold tensors of the main graph that are not outputs of it.
  void check(const TensorMap& inputs, const TensorMap& outputs);

 private:
  void infer(const std::map<std::string, Shape, std::less<>>& input_shapes, const TensorMap& outputs);

  std::shared_ptr<const onnx::Model> model_;
  /// The last inputs' shapes and what follows from them: most runs have the shapes of the run before.
  std::optional<std::map<std::string, Shape, std::less<>>> input_shapes_;
  std::map<std::string, Shape> expected_;
};

}  // namespace graft::runtime

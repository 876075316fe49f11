// Checks that the outputs of a run have the shapes that ONNX specifies.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>

#include "onnx/model.hpp"
#include "runtime/engine.hpp"

namespace graft::runtime {

/// Compares the shapes that OpenVINO returns with the shapes that shape inference computes from the shapes of the
/// inputs.
///
/// OpenVINO 2026.4 returns some outputs with a wrong shape and without an error: from some MaxPool and Resize nodes,
/// and, in a process that has one processor, from every node whose shape inference throws, because OpenVINO then drops
/// the exception. Sizes that depend on the inputs' values are not known before the run and are not compared.
class OutputShapes {
 public:
  OutputShapes() = default;
  explicit OutputShapes(std::shared_ptr<const onnx::Model> model) : model_(std::move(model)) {}

  /// Throws EngineLimit, naming the output and both shapes, if the shape of a tensor in `outputs` differs from the
  /// shape inferred for these `inputs`. `outputs` may also hold inner tensors of the main graph.
  void check(const TensorMap& inputs, const TensorMap& outputs);

 private:
  void infer(const std::map<std::string, Shape, std::less<>>& input_shapes, const TensorMap& outputs);

  std::shared_ptr<const onnx::Model> model_;
  /// The input shapes of the previous run. `expected_` holds the output shapes that were inferred for them, so that a
  /// run with the same input shapes infers nothing.
  std::optional<std::map<std::string, Shape, std::less<>>> input_shapes_;
  std::map<std::string, Shape> expected_;
};

}  // namespace graft::runtime

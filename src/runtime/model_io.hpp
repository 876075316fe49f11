// What every engine does with the inputs and outputs that a model declares.
#pragma once

#include <functional>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "runtime/engine.hpp"

namespace graft::runtime {

/// The inputs that a run has to give: those without a default in the file.
class DeclaredInputs {
 public:
  struct Input {
    std::string name;
    onnx::ElementType type = onnx::ElementType::undefined;
    std::optional<Shape> shape;
  };

  DeclaredInputs() = default;
  /// Throws Error for an input that is no tensor, or of a type that the engine does not take.
  DeclaredInputs(const onnx::Model& model, const std::function<bool(onnx::ElementType)>& takes);

  [[nodiscard]] const std::vector<Input>& all() const { return inputs_; }
  /// "'x', 'y'"; "none".
  [[nodiscard]] std::string names() const;
  /// "model.onnx: input 'x'", for messages.
  [[nodiscard]] std::string place_of(const Input& input) const;
  /// Throws Error as CompiledModel::run does.
  void check(const TensorMap& inputs) const;

 private:
  std::string source_;
  std::vector<Input> inputs_;
  std::set<std::string, std::less<>> defaults_;
};

/// A default makes an input a constant, as old exporters mean it: they list every weight as an input.
void fix_defaults(onnx::Model& model);

/// Appends inner values of the main graph to the outputs, unless they are outputs already. Throws Error for one that
/// does not exist.
void add_extra_outputs(onnx::Model& model, const std::vector<std::string>& names);

/// Throws Error for an output that is no tensor of numbers.
[[nodiscard]] std::vector<std::string> output_names(const onnx::Model& model);

/// What Engine::evaluate_constant_graph refuses: throws Error for a model with inputs, and for random numbers.
void check_constant_graph(const onnx::Model& model);

/// "f32[2, 3]".
[[nodiscard]] std::string type_and_shape(onnx::ElementType type, const std::optional<Shape>& shape);

/// "x: f32[2, 3], i: i64[1]"; "no inputs".
[[nodiscard]] std::string types_and_shapes(const TensorMap& inputs);

/// The shapes of tensors.
[[nodiscard]] std::map<std::string, Shape, std::less<>> shapes_of(const TensorMap& tensors);

}  // namespace graft::runtime

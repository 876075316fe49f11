// Checks and converts the inputs and outputs that a model declares, in the same way for every engine.
#pragma once

#include <functional>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "runtime/engine.hpp"

namespace graft::runtime {

/// The inputs that a run has to supply: all inputs without a default in the file.
class DeclaredInputs {
 public:
  struct Input {
    std::string name;
    onnx::ElementType type = onnx::ElementType::undefined;
    std::optional<Shape> shape;
  };

  DeclaredInputs() = default;
  /// Reads the declared inputs. Throws Error for an input that is not a tensor, or whose type the engine does not
  /// support according to `takes`.
  DeclaredInputs(const onnx::Model& model, const std::function<bool(onnx::ElementType)>& takes);

  [[nodiscard]] const std::vector<Input>& all() const { return inputs_; }
  /// Returns the quoted names for messages: "'x', 'y'", or "none".
  [[nodiscard]] std::string names() const;
  /// Returns the model and the name of an input, for messages: "model.onnx: input 'x'".
  [[nodiscard]] std::string place_of(const Input& input) const;
  /// Throws Error for inputs that are unknown, missing or of the wrong type or shape, as CompiledModel::run does.
  void check(const TensorMap& inputs) const;

 private:
  std::string source_;
  std::vector<Input> inputs_;
  std::set<std::string, std::less<>> defaults_;
};

/// Converts inputs that have a default to constants. Old exporters list every weight as an input with a default.
void fix_defaults(onnx::Model& model);

/// Appends inner values of the main graph to the outputs, unless they are outputs already. Throws Error for a name that
/// does not exist.
void add_extra_outputs(onnx::Model& model, const std::vector<std::string>& names);

/// Returns the names of the outputs. Throws Error for an output that is not a tensor of numeric elements.
[[nodiscard]] std::vector<std::string> output_names(const onnx::Model& model);

/// Throws Error for a model that Engine::evaluate_constant_graph cannot compute: one with inputs or random numbers.
void check_constant_graph(const onnx::Model& model);

/// Returns the type and shape for messages: "f32[2, 3]".
[[nodiscard]] std::string type_and_shape(onnx::ElementType type, const std::optional<Shape>& shape);

/// Returns names, types and shapes for messages: "x: f32[2, 3], i: i64[1]", or "no inputs".
[[nodiscard]] std::string types_and_shapes(const TensorMap& inputs);

[[nodiscard]] std::map<std::string, Shape, std::less<>> shapes_of(const TensorMap& tensors);

}  // namespace graft::runtime

// The inputs that need data, and the rules by which an array becomes the tensor of an input.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "graft/operator/shape.hpp"
#include "onnx/model.hpp"
#include "runtime/engine.hpp"

namespace graft::data {

/// The name, type and shape of an input of a network.
struct Port {
  std::string name;
  std::optional<onnx::ElementType> type;
  std::optional<Shape> shape;
};

/// An input that needs data. In a comparison, it stands for the inputs of both networks that get the same tensor.
struct Input {
  Port port;                           ///< The input of the network, or of the reference in a comparison.
  std::optional<Port> candidate = {};  ///< The input of the candidate in a comparison.
  bool is_required = true;             ///< Whether no run is possible without data for the input.

  [[nodiscard]] const std::string& name() const { return port.name; }
  [[nodiscard]] bool has_name(std::string_view name) const {
    return port.name == name || (candidate && candidate->name == name);
  }
};

/// The inputs of one network, or of two networks that are compared.
struct Inputs {
  std::vector<Input> list;
  /// Whether a comparison of two networks uses the inputs. An array may then have its channels on another axis than the
  /// network, and its other sizes are checked by the comparison.
  bool is_comparison = false;

  /// Returns the input with this name, or null. The names in the reference are searched before the names in the
  /// candidate.
  [[nodiscard]] const Input* find(std::string_view name) const;
  /// Returns the names, separated by commas; "none" if there is no input.
  [[nodiscard]] std::string names() const;
};

/// Returns the inputs without a default value.
[[nodiscard]] Inputs inputs_of(const onnx::Model& model);
/// Returns the inputs of both models. Inputs of the two models that get the same tensor in `graft verify` are one
/// Input.
[[nodiscard]] Inputs inputs_of(const onnx::Model& reference, const onnx::Model& candidate);

/// Returns type and shape for messages: "f32[N, 1, 8, 8]".
[[nodiscard]] std::string type_and_shape(const Port& port);

/// Returns ` (did you mean 'image'?)`, or an empty string if no name is similar.
[[nodiscard]] std::string suggestion(std::string_view name, const std::vector<std::string>& allowed);

/// Throws Error for a name that no input has; the message lists the names of the inputs. `place` is the file or
/// argument that contains the name.
[[noreturn]] void fail_unknown_input(const std::string& place, const std::string& name, const Inputs& inputs);

/// The changes by which an array becomes the tensor of an input.
struct Fit {
  std::optional<onnx::ElementType> converted_from = {};  ///< The type of the array, if its elements are converted.
  bool adds_axis = false;  ///< Whether the array is one sample, which gets a first axis of size 1.
};

/// Returns how an array becomes the tensor of an input, or nothing if it does not fit. The rules are:
/// - A floating-point array may have another floating-point type than the input, and an integer array another integer
///   type. The elements are converted, and each must be in the range of the input's type.
/// - All sizes except the first must be those of the input. An array without the first axis is one sample.
/// With `is_comparison`, the channels may be on another axis than in the input.
[[nodiscard]] std::optional<Fit> fit(const Input& input, onnx::ElementType type, const std::vector<std::int64_t>& dims,
                                     bool is_comparison);

/// Returns the result of fit(). Throws Error for an array that does not fit, with the type and shape of the input and
/// the next step; `place` names the array in the message. With `is_comparison`, does not throw if only the sizes do not
/// fit, because the comparison reports them with the shapes of both models. With `is_image`, the array is an image, and
/// the next step for a wrong height or width is a line of the recipe.
[[nodiscard]] Fit fit_or_fail(const Input& input, onnx::ElementType type, const std::vector<std::int64_t>& dims,
                              bool is_comparison, const std::string& place, bool is_image = false);

/// Returns a sentence about the conversion of an array of shape `dims`, or an empty string if it is used as it is.
/// `place`, the file or argument with the array, begins the sentence.
[[nodiscard]] std::string describe(const Fit& fit, const Input& input, const std::vector<std::int64_t>& dims,
                                   const std::string& place);

/// Returns the tensor of the input: `array` with the changes of `fit`. Throws Error for an element that is out of the
/// range of the input's type; `place` begins the message.
[[nodiscard]] onnx::TensorData convert(onnx::TensorData array, const Fit& fit, const Input& input,
                                       const std::string& place);

/// Converts tensors in memory to the types of the inputs, and adds a sentence to `notes` for each conversion. If the
/// model has a single input, its tensor may have the empty name. A tensor whose name no input has is returned
/// unchanged. Throws Error for a tensor that does not fit; `place` names the model in the message.
[[nodiscard]] runtime::TensorMap convert_tensors(const runtime::TensorMap& tensors, const Inputs& inputs,
                                                 const std::string& place, std::vector<std::string>& notes);

/// Throws Error naming `source` if an array of floating-point numbers contains only NaN and infinities, because no
/// range can be computed from it.
void check_has_numbers(const std::string& input, const onnx::TensorData& tensor, const std::string& source);

/// Returns the number of elements that are NaN.
[[nodiscard]] std::int64_t count_nan(const onnx::TensorData& tensor);

}  // namespace graft::data

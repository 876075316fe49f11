// Converts the data, shapes and ranges that a caller passes for the inputs of two models. They may have the names and
// the layout of either model.
#pragma once

#include <map>
#include <string>

#include "onnx/model.hpp"
#include "verify/compare/verify_models.hpp"

namespace graft::verify {

/// The shapes of the caller's inputs, by input name, in the layout of each model's own inputs.
struct PlacedShapes {
  std::map<std::string, Shape, std::less<>> reference;
  std::map<std::string, Shape, std::less<>> candidate;
};

/// Returns the shapes of the tensors in `options.data` and of the entries in `options.shapes`. Throws Error for a name
/// that neither model has, and for sizes that neither model accepts.
[[nodiscard]] PlacedShapes place_shapes(const onnx::Model& reference, const onnx::Model& candidate,
                                        const VerifyOptions& options);

/// Converts `options.data` and `options.shapes` to the names and layouts of the reference. Throws the errors of
/// place_shapes.
void place_inputs(const onnx::Model& reference, const onnx::Model& candidate, VerifyOptions& options);

/// Completes the options; call it after place_inputs. With data, splits them into runs if a model has a fixed batch.
/// Without data, sets dynamic sizes that only the candidate fixes, converts ranges to the names of the reference,
/// infers missing ranges from the first layers of both models, and finds the inputs whose integers may be large in both
/// models. Throws Error for a range of an input that neither model has, and for data whose size is not a multiple of a
/// fixed batch.
void complete_inputs(const onnx::Model& reference, const onnx::Model& candidate, VerifyOptions& options);

}  // namespace graft::verify

// Converts the data, shapes and ranges that a caller passes for the inputs of two models. They may have the names and
// the layout of either model.
#pragma once

#include <map>
#include <string>

#include "onnx/model.hpp"
#include "verify/compare/verify_models.hpp"

namespace graft::verify {

/// The shapes of the caller's data and shapes, in the layout of each model's own inputs.
struct PlacedShapes {
  std::map<std::string, Shape, std::less<>> reference;
  std::map<std::string, Shape, std::less<>> candidate;
};

/// Returns the shapes of `data` and `shapes` of the options. Throws Error for a name that neither model has, and for
/// sizes that neither model accepts.
[[nodiscard]] PlacedShapes place_shapes(const onnx::Model& reference, const onnx::Model& candidate,
                                        const VerifyOptions& options);

/// Converts `data` and `shapes` of the options to the names and the layout of the reference. Throws the errors of
/// place_shapes.
void place_inputs(const onnx::Model& reference, const onnx::Model& candidate, VerifyOptions& options);

/// Completes the options after place_inputs. Data are split into runs if a model has a fixed batch. Without data,
/// dynamic dimensions of the reference that the candidate fixes get its sizes, ranges are converted to the names of the
/// reference, missing ranges are inferred from the first layers of both models, and integers that may be large in both
/// models are determined. Throws Error for a range of an input that neither model has, and for data whose size is not a
/// multiple of a fixed batch.
void complete_inputs(const onnx::Model& reference, const onnx::Model& candidate, VerifyOptions& options);

}  // namespace graft::verify

// What a caller gives for the inputs of two models: found under the names of either, in the layout of either.
#pragma once

#include <map>
#include <string>

#include "graft/setting.hpp"
#include "onnx/model.hpp"
#include "verify/verify_models.hpp"

namespace graft::verify {

/// How messages call what was given.
struct GivenNames {
  std::string data = std::string(setting_name(Setting::data));
  std::string shapes = std::string(setting_name(Setting::synthetic_shapes));
  std::string ranges = std::string(setting_name(Setting::synthetic_ranges));
};

/// The shapes that were given, and those of the data, as each model's own inputs have them.
struct PlacedShapes {
  std::map<std::string, Shape, std::less<>> reference;
  std::map<std::string, Shape, std::less<>> candidate;
};

/// Brings `data` and `shapes` of the options to the names and the layout of the reference. Throws Error for a name that
/// neither model has, and for sizes that neither can have.
PlacedShapes place_inputs(const onnx::Model& reference, const onnx::Model& candidate, VerifyOptions& options,
                          const GivenNames& names = {});

/// After place_inputs. Data are split into runs where a model has a fixed batch. Without data, dynamic dimensions of
/// the reference that the candidate fixes get its sizes, ranges are brought to the names of the reference, and those
/// that were not given are inferred from its first layers; integers that may be large in both models are found. Throws
/// Error for a range of an input that neither model has, and for data that a fixed batch does not divide.
void complete_inputs(const onnx::Model& reference, const onnx::Model& candidate, VerifyOptions& options,
                     const GivenNames& names = {});

}  // namespace graft::verify

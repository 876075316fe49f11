// The data with which a model is calibrated.
#pragma once

#include <cstdint>
#include <filesystem>

#include "data/samples.hpp"
#include "onnx/model.hpp"

namespace graft::quant {

using CalibrationData = data::Samples;

/// Opens the calibration data in a file or folder. `recipe` is a file that describes how to preprocess images; empty
/// for none. `limit` is the maximum number of samples; 0 means all. Throws Error naming the file and the input if the
/// data do not fit the model's inputs.
[[nodiscard]] CalibrationData open_calibration_data(const std::filesystem::path& path, const onnx::Model& model,
                                                    const std::filesystem::path& recipe = {}, std::int64_t limit = 0);

}  // namespace graft::quant

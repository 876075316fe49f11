// Supplies calibration data: samples from NumPy files, images or memory.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "graft/setting.hpp"
#include "onnx/model.hpp"
#include "runtime/engine.hpp"

namespace graft::quant {

/// Samples by index. Several threads may call `sample`. Only the samples in use, a few images and at most one NumPy
/// file are in memory.
struct CalibrationData {
  std::int64_t count = 0;
  std::function<runtime::TensorMap(std::int64_t)> sample;
  std::string identity;  ///< A string that identifies the data: the names of the files, their sizes, the recipe.
};

/// Throws Error naming `source` if an array of floating-point numbers contains only NaN and infinities, because no
/// range can be computed from it.
void check_has_numbers(const std::string& input, const onnx::TensorData& tensor, const std::string& source);

/// Opens calibration data: a .npz file (an array for each input of the model, or one array for its only input), a .npy
/// file, or a folder of images, which need the file of a recipe (read_image_recipe), or of .npz and .npy files, each
/// with the inputs of one run. In a single file the first axis counts samples: one run uses as many as the model's
/// first dimension, or one if that is dynamic; the remainder is not used. Files of a folder are read in the order of
/// their names. `limit` is the maximum number of samples; 0: all. Throws Error naming the file and the input that do
/// not fit.
[[nodiscard]] CalibrationData open_calibration_data(const std::filesystem::path& path, const onnx::Model& model,
                                                    const std::filesystem::path& recipe = {}, std::int64_t limit = 0);

/// Returns a .npz or .npy file that open_calibration_data() reads as a list of sources that name the inputs, for
/// commands that do not choose an array by its shape: "NAME=FILE.npz:ARRAY" or "NAME=FILE.npy" for each input. An
/// archive whose arrays are exactly the inputs stays "FILE.npz".
[[nodiscard]] std::vector<std::string> tensor_sources(const std::filesystem::path& path, const onnx::Model& model);

/// Returns samples from tensors in memory, by the names of the model's inputs. The first axis counts samples, as in a
/// file. `option` is the name of the tensors' option in messages.
[[nodiscard]] CalibrationData calibration_data_of(const runtime::TensorMap& tensors, const onnx::Model& model,
                                                  std::int64_t limit = 0,
                                                  std::string_view option = setting_name(Setting::data));

}  // namespace graft::quant

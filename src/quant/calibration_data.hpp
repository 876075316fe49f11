// What a network is calibrated with: one sample after the other, from NumPy's files or from images.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>

#include "graft/setting.hpp"
#include "onnx/model.hpp"
#include "quant/images.hpp"
#include "runtime/engine.hpp"

namespace graft::quant {

/// Samples by number, which several threads may ask for. Only those are in memory, and a single file of NumPy's.
struct CalibrationData {
  std::int64_t count = 0;
  std::function<runtime::TensorMap(std::int64_t)> sample;
  std::string identity;  ///< Says which data these are: the names of the files, their sizes, the recipe.
};

/// Throws Error naming `source` for an array of real numbers of which none is finite: nothing could be judged with it.
void check_has_numbers(const std::string& input, const onnx::TensorData& tensor, const std::string& source);

/// One .npz (an array for each input of the model, or one array for its only input) or .npy: the first axis counts
/// samples, and one run takes as many as the model's first dimension says, one where it is open; the rest is left out.
/// Or a folder: of images, with a recipe; or of .npz and .npy files, each the inputs of one run. Files are taken in the
/// order of their names, at most `limit` samples where it is not 0. Throws Error naming the file and the input that do
/// not fit.
[[nodiscard]] CalibrationData open_calibration_data(const std::filesystem::path& path, const onnx::Model& model,
                                                    const std::optional<ImageRecipe>& recipe, std::int64_t limit = 0);

/// Tensors in memory, by the names of the model's inputs; the first axis counts samples, as in a file. `option` is what
/// messages call them.
[[nodiscard]] CalibrationData calibration_data_of(const runtime::TensorMap& tensors, const onnx::Model& model,
                                                  std::int64_t limit = 0,
                                                  std::string_view option = setting_name(Setting::data));

}  // namespace graft::quant

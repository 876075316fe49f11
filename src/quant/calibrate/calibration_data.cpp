// Opens the data of a calibration.
#include "quant/calibrate/calibration_data.hpp"

namespace graft::quant {

CalibrationData open_calibration_data(const std::filesystem::path& path, const onnx::Model& model,
                                      const std::filesystem::path& recipe, std::int64_t limit) {
  const data::SourceOptions options{.recipe = recipe, .files = limit};
  return data::divide_samples(data::open_sources({path.string()}, data::inputs_of(model), options), limit);
}

}  // namespace graft::quant

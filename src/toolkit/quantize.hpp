// Typed models with all that was found out about them: what `quantize` and the program are made from.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <variant>

#include "engine/metric_command.hpp"
#include "graft/setting.hpp"
#include "graft/toolkit/cpu_engine.hpp"
#include "graft/toolkit/model.hpp"
#include "graft/toolkit/progress.hpp"
#include "quant/search/choose_int8.hpp"
#include "quant/search/choose_types.hpp"
#include "toolkit/value_check.hpp"

namespace graft::toolkit {

/// Bytes of weights.
struct WeightBytes {
  std::uint64_t before = 0;
  std::uint64_t after = 0;
};

struct TypesReport {
  quant::ChosenTypes chosen;
  WeightBytes weights;
  ValueCheck check;
  [[nodiscard]] bool met() const { return chosen.met && check.is_good(); }
};

struct Int8Report {
  quant::ChosenInt8 chosen;
  WeightBytes weights;
  ValueCheck check;  ///< Not made where the user's metric judges, or where there are no data to judge by.
  [[nodiscard]] bool met() const { return chosen.met && check.is_good(); }
};

/// What `quantize` made, as present.hpp shows it.
struct Quantization {
  Model model;  ///< The f32 one.
  verify::Precision precision = verify::Precision::f16;
  std::variant<TypesReport, Int8Report> report;
  quant::Int8Options int8 = {};  ///< Without its functions.
  bool has_data = false;
};

/// Samples of inputs: in memory, or in the files that open_calibration_data reads. None where both are empty.
struct Samples {
  runtime::TensorMap tensors = {};
  std::filesystem::path path = {};
  std::optional<quant::ImageRecipe> recipe = {};                ///< Of images in `path`.
  std::int64_t limit = 0;                                       ///< So many at most; 0: all.
  std::string name = std::string(setting_name(Setting::data));  ///< How messages call them.
};

/// Throws Error, quoting `name`, for a recipe where the data are no folder.
[[nodiscard]] std::optional<quant::ImageRecipe> read_recipe(const std::filesystem::path& file,
                                                            const std::filesystem::path& data, const std::string& name);

/// In f16 or bf16. `data` are split into runs where the model has a fixed batch.
[[nodiscard]] TypesReport quantize_types(const Model& given, quant::ChooseOptions options,
                                         const runtime::TensorMap& data, const std::string& data_name,
                                         const Watch& watch, CpuEngine engine);

/// In int8 or f8.
[[nodiscard]] Int8Report quantize_int8(const Model& given, graft::quant::Int8Options options, const Samples& samples,
                                       const Watch& watch, CpuEngine engine);

/// Writes the model, and returns the file beside it that has its weights, where there is one.
std::optional<std::filesystem::path> write(const TypesReport& report, const std::filesystem::path& output);

/// The same, and before it the scales for TensorRT 7 to 10, where `cache` is not empty. Throws Error, quoting
/// `cache_name`, where there are none.
std::optional<std::filesystem::path> write(const Int8Report& report, const std::filesystem::path& output,
                                           const std::filesystem::path& cache, const std::string& cache_name);

}  // namespace graft::toolkit

// Quantization of models with all its details: the implementation of `quantize` and of the program.
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

/// The size of all weights in bytes, before and after the quantization.
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
  ValueCheck check;  ///< Without a report where a metric or max_drop judges, and where there are no data.
  [[nodiscard]] bool met() const { return chosen.met && check.is_good(); }
};

/// The details of a QuantizeResult, which the functions of present.hpp read.
struct Quantization {
  Model model;  ///< The f32 model.
  verify::Precision precision = verify::Precision::f16;
  std::variant<TypesReport, Int8Report> report;
  quant::Int8Options int8 = {};  ///< The options for int8 and f8; their functions are empty.
  bool has_data = false;
};

/// Samples of inputs: in memory, or in files that open_calibration_data reads. Both may be empty.
struct Samples {
  runtime::TensorMap tensors = {};
  std::filesystem::path path = {};
  std::optional<quant::ImageRecipe> recipe = {};                ///< The preparation of images in `path`.
  std::int64_t limit = 0;                                       ///< Maximum number of samples; 0: all.
  std::string name = std::string(setting_name(Setting::data));  ///< The name of the samples in messages.
};

/// Reads the recipe; nothing where `file` is empty. Throws Error quoting `name` where `data` is not a folder.
[[nodiscard]] std::optional<quant::ImageRecipe> read_recipe(const std::filesystem::path& file,
                                                            const std::filesystem::path& data, const std::string& name);

/// Quantizes a model to f16 or bf16. `data` are split into runs where the model has a fixed batch. Throws the errors of
/// the public `quantize`.
[[nodiscard]] TypesReport quantize_types(const Model& given, quant::ChooseOptions options,
                                         const runtime::TensorMap& data, const std::string& data_name,
                                         const Watch& watch, CpuEngine engine);

/// Quantizes a model to int8 or f8. Throws the errors of the public `quantize`.
[[nodiscard]] Int8Report quantize_int8(const Model& given, graft::quant::Int8Options options, const Samples& samples,
                                       const Watch& watch, CpuEngine engine);

/// Writes the model, and returns the file with its weights, where there is one.
std::optional<std::filesystem::path> write(const TypesReport& report, const std::filesystem::path& output);

/// Writes the scales to the calibration cache `cache` for TensorRT 7 to 10, unless it is empty, and then the model.
/// Returns the file with the model's weights, where there is one. Throws Error quoting `cache_name` where there are no
/// scales.
std::optional<std::filesystem::path> write(const Int8Report& report, const std::filesystem::path& output,
                                           const std::filesystem::path& cache, const std::string& cache_name);

}  // namespace graft::toolkit

// TensorRT's calibration cache files: the scale of each tensor, as TensorRT 7 to 10 write and read them.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "onnx/model.hpp"

namespace graft::quant {

/// The first line is `TRT-<version>-<algorithm>`; each other one is `<tensor>: <the scale's bits in hexadecimal>`,
/// which C++ streams write without leading zeros. A scale is the largest absolute value that is kept, divided by 127.
struct CalibrationCache {
  struct Entry {
    std::string tensor;  ///< Any text, with colons, blanks and parentheses: "(Unnamed Layer* 3) [Shuffle]_output".
    float scale = 0;     ///< 0 where TensorRT found no range, of sizes and of tensors that are 0.
    friend bool operator==(const Entry&, const Entry&) = default;
  };
  std::int64_t version = 0;  ///< 8601 of TensorRT 8.6.1, 101401 of 10.14.1.
  std::string algorithm;     ///< "EntropyCalibration2", "MinMaxCalibration" ...
  std::vector<Entry> entries;

  [[nodiscard]] const Entry* find(std::string_view tensor) const;
  friend bool operator==(const CalibrationCache&, const CalibrationCache&) = default;
};

/// Throws Error naming file and line, what was found and what is allowed.
[[nodiscard]] CalibrationCache read_calibration_cache(const std::filesystem::path& path);
/// The same from memory; `name` is for messages.
[[nodiscard]] CalibrationCache parse_calibration_cache(std::string_view text, std::string_view name);

/// What TensorRT writes, byte for byte. Throws Error for what a file cannot hold and read back.
[[nodiscard]] std::string format_calibration_cache(const CalibrationCache& cache);
/// Written whole or not at all.
void write_calibration_cache(const std::filesystem::path& path, const CalibrationCache& cache);

/// Of TensorRT 10.16, the last that reads them.
inline constexpr std::int64_t newest_cache_version = 101600;

/// Metadata of an int8 model: the cache that it was made with or from, also the scales that no node has.
inline constexpr std::string_view cache_note = "graft.calibration_cache";

/// The scales of a model's QuantizeLinear nodes and of Graft's int8 operators, as a cache: the one that the model
/// remembers, as long as it says the same as those nodes. Throws Error naming the node for what a cache cannot say (a
/// zero point, a scale for each channel), and for a model with no scale at all.
[[nodiscard]] CalibrationCache cache_of(const onnx::Model& model);

}  // namespace graft::quant

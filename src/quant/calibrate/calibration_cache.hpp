// TensorRT's calibration cache files: the scale of each tensor, as TensorRT 7 to 10 write and read them.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "onnx/model.hpp"

namespace graft::quant {

/// The content of a cache file. The first line is `TRT-<version>-<algorithm>`; each other line is `<tensor>: <the
/// scale's bits in hexadecimal>`, which C++ streams write without leading zeros. A scale is the largest absolute value
/// that is kept, divided by 127.
struct CalibrationCache {
  struct Entry {
    /// The name of a tensor: any string, with colons, blanks and parentheses: "(Unnamed Layer* 3) [Shuffle]_output".
    std::string tensor;
    float scale = 0;  ///< 0 if TensorRT found no range: for sizes, and for tensors that are 0.
    friend bool operator==(const Entry&, const Entry&) = default;
  };
  std::int64_t version = 0;  ///< 8601 for TensorRT 8.6.1, 101401 for 10.14.1.
  std::string algorithm;     ///< "EntropyCalibration2", "MinMaxCalibration" ...
  std::vector<Entry> entries;

  [[nodiscard]] const Entry* find(std::string_view tensor) const;
  friend bool operator==(const CalibrationCache&, const CalibrationCache&) = default;
};

/// Reads a cache file. Throws Error naming file and line, what was found and what is allowed.
[[nodiscard]] CalibrationCache read_calibration_cache(const std::filesystem::path& path);
/// Parses the text of a cache file. `name` is the name of the file in messages.
[[nodiscard]] CalibrationCache parse_calibration_cache(std::string_view text, std::string_view name);

/// Returns the text that TensorRT writes for this cache, byte for byte. Throws Error (internal) if the text would not
/// be read back as the same cache.
[[nodiscard]] std::string format_calibration_cache(const CalibrationCache& cache);
/// Writes a cache file, whole or not at all.
void write_calibration_cache(const std::filesystem::path& path, const CalibrationCache& cache);

/// The version of TensorRT 10.16, the last release that reads cache files.
inline constexpr std::int64_t newest_cache_version = 101600;

/// The metadata key of int8 models for the cache that a model was made with or from, also with scales that no node has.
inline constexpr std::string_view cache_note = "graft.calibration_cache";

/// Returns the scales of a model's QuantizeLinear nodes and of Graft's int8 operators as a cache. Returns the cache in
/// the model's metadata instead, if it holds the same scales for these nodes. Throws Error naming the node for scales
/// that a cache cannot hold (a zero point, a scale for each channel), and for a model without a scale.
[[nodiscard]] CalibrationCache cache_of(const onnx::Model& model);

}  // namespace graft::quant

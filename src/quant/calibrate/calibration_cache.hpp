// Reads and writes TensorRT's calibration cache files, which contain the scale of each tensor, in the format of
// TensorRT 7 to 10.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "onnx/model.hpp"

namespace graft::quant {

/// The content of a cache file. The first line is `TRT-<version>-<algorithm>`; each other line is `<tensor>: <the
/// scale's bits in hexadecimal>`, written by C++ streams without leading zeros. A scale is the largest absolute value
/// that is not saturated, divided by 127.
struct CalibrationCache {
  struct Entry {
    /// The name of a tensor. It may be any string, with colons, blanks and parentheses: "(Unnamed Layer* 3)
    /// [Shuffle]_output".
    std::string tensor;
    float scale = 0;  ///< The scale; 0 if TensorRT found no range, as for sizes and for tensors of zeros.
    friend bool operator==(const Entry&, const Entry&) = default;
  };
  std::int64_t version = 0;  ///< The version number: 8601 for TensorRT 8.6.1, 101401 for 10.14.1.
  std::string algorithm;     ///< The name of the algorithm, such as "EntropyCalibration2" or "MinMaxCalibration".
  std::vector<Entry> entries;

  [[nodiscard]] const Entry* find(std::string_view tensor) const;
  friend bool operator==(const CalibrationCache&, const CalibrationCache&) = default;
};

/// Reads a cache file. Throws Error with file and line if the file does not have the format of CalibrationCache.
[[nodiscard]] CalibrationCache read_calibration_cache(const std::filesystem::path& path);
/// Parses the text of a cache file. `name` is the name of the file in messages. Throws Error with name and line as
/// read_calibration_cache does.
[[nodiscard]] CalibrationCache parse_calibration_cache(std::string_view text, std::string_view name);

/// Returns the text that TensorRT writes for this cache, byte for byte. Throws Error (internal) if the text would not
/// be read back as the same cache.
[[nodiscard]] std::string format_calibration_cache(const CalibrationCache& cache);
/// Writes a cache file. If writing fails, throws Error and leaves an existing file unchanged.
void write_calibration_cache(const std::filesystem::path& path, const CalibrationCache& cache);

/// The version number of TensorRT 10.16, the last release that reads cache files.
inline constexpr std::int64_t newest_cache_version = 101600;

/// The metadata key under which int8 models store their calibration cache as text. This cache may contain scales that
/// no node uses.
inline constexpr std::string_view cache_note = "graft.calibration_cache";

/// Returns the scales of a model's QuantizeLinear nodes and of Graft's int8 operators as a cache, by the names of the
/// quantized tensors. If the model's metadata contain a cache with the same scales for these tensors, returns that
/// cache. Throws Error naming the node for a scale that a cache cannot represent (with a zero point, or one for each
/// channel), and Error for a model without any scale.
[[nodiscard]] CalibrationCache cache_of(const onnx::Model& model);

}  // namespace graft::quant

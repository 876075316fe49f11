// Reads and writes ONNX files.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

#include "onnx/model.hpp"

namespace graft::onnx {

/// The newest opset of ai.onnx and the newest IR version that Graft reads: those of onnx 1.23. Newer ones are refused
/// because their meaning is unknown.
inline constexpr std::int64_t newest_opset = 28;
inline constexpr std::int64_t newest_ir_version = 14;

/// Reads a model and its external data. Throws Error naming file, node and attribute for malformed input: not a
/// protobuf, training information, undefined or repeated names, cycles, sizes that contradict each other, external data
/// outside the model's folder, nesting deeper than 24. In an IR 3 file every initializer is also an input; such a file
/// is read as IR 4, where initializers are constants, as runtimes treat them.
[[nodiscard]] Model read_onnx(const std::filesystem::path& path);

/// Parses a model from memory. `base_folder` is the folder of external data; if it is empty, external data are refused.
/// `name` is the file's name in messages. If `owner` is given, it keeps the bytes alive and the model's weights refer
/// to them; otherwise the weights are copied.
[[nodiscard]] Model parse_onnx(std::string_view bytes, const std::filesystem::path& base_folder, std::string name,
                               std::shared_ptr<const void> owner = nullptr);

enum class ExternalData : std::uint8_t {
  automatic,  ///< External data are written only if the tensors exceed protobuf's 2 GiB.
  never,      ///< External data are never written. An Error is thrown if the file would exceed protobuf's 2 GiB.
  always,
};

struct WriteOptions {
  ExternalData external_data = ExternalData::automatic;
  std::size_t external_above = 4096;  ///< The size in bytes up to which tensors stay in the model file.
};

/// Writes the model, with external data in `<path>.data`. Each file is written under a temporary name, flushed to disk
/// and then renamed, so it is complete or absent. Returns the file of external data if one was written. Throws Error if
/// writing fails, for example because the disk is full.
std::optional<std::filesystem::path> write_onnx(const Model& model, const std::filesystem::path& path,
                                                const WriteOptions& options = {});

/// Returns the size in bytes of all initializers and of the tensors in attributes, also in subgraphs and functions.
[[nodiscard]] std::size_t weight_bytes(const Model& model);

/// The number of bytes of weights (weight_bytes()) above which a model is written to a temporary file for another
/// reader, because serialize_onnx is limited to protobuf's 2 GiB.
inline constexpr std::size_t largest_serialized_weights = std::size_t{3} << 29;

/// Returns the content of a model file that includes all tensor data.
[[nodiscard]] std::string serialize_onnx(const Model& model);

}  // namespace graft::onnx

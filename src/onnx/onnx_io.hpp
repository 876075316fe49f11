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

/// The newest opset of ai.onnx and the newest IR version that Graft reads: the versions of onnx 1.23. Newer ones are
/// refused because their meaning is unknown.
inline constexpr std::int64_t newest_opset = 28;
inline constexpr std::int64_t newest_ir_version = 14;

/// Reads a model and its external data. Throws Error naming file, node and attribute for anything malformed: not a
/// protobuf, training information, undefined or repeated names, cycles, sizes that do not agree, external data outside
/// the model's folder, nesting deeper than 24. In an IR 3 file every initializer is also an input; such a file is read
/// as IR 4, where initializers are constants, as runtimes treat them.
[[nodiscard]] Model read_onnx(const std::filesystem::path& path);

/// Parses a model from memory. `base_folder` is the folder of external data; if it is empty, external data are refused.
/// `name` is for messages. With an `owner`, which keeps the bytes alive, the model's weights are parts of them; without
/// one they are copied.
[[nodiscard]] Model parse_onnx(std::string_view bytes, const std::filesystem::path& base_folder, std::string name,
                               std::shared_ptr<const void> owner = nullptr);

enum class ExternalData : std::uint8_t {
  automatic,  ///< External data only if the tensors exceed protobuf's 2 GiB.
  never,      ///< No external data; an Error if the file would exceed protobuf's 2 GiB.
  always,
};

struct WriteOptions {
  ExternalData external_data = ExternalData::automatic;
  std::size_t external_above = 4096;  ///< Bytes; tensors up to this size stay in the file.
};

/// Writes the model, with external data in `<path>.data`. Each file is written under a temporary name, flushed to disk,
/// then renamed, so it is complete or absent. Returns the file of external data if one was written. Throws Error if
/// writing fails, for example because the disk is full.
std::optional<std::filesystem::path> write_onnx(const Model& model, const std::filesystem::path& path,
                                                const WriteOptions& options = {});

/// Returns the bytes of all initializers and of the tensors in attributes, also in sub-graphs and functions.
[[nodiscard]] std::size_t weight_bytes(const Model& model);

/// The weight_bytes above which models are passed through files: serialize_onnx must stay within protobuf's 2 GiB.
inline constexpr std::size_t largest_serialized_weights = std::size_t{3} << 29;

/// Returns the bytes of a file that holds all data.
[[nodiscard]] std::string serialize_onnx(const Model& model);

}  // namespace graft::onnx

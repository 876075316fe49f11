// Reading and writing ONNX files.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "onnx/model.hpp"

namespace graft::onnx {

/// What Graft reads: the operator sets of ai.onnx and the versions of the file format that onnx 1.23 knows. What a
/// newer one means is unknown, so it is refused.
inline constexpr std::int64_t newest_opset = 28;
inline constexpr std::int64_t newest_ir_version = 14;

/// Reads a model and its external data. Throws Error naming file, node and attribute for anything malformed: not a
/// protobuf, training information, undefined or repeated names, cycles, sizes that do not agree, external data outside
/// the model's folder, nesting deeper than 24. Every initializer of an IR 3 file is an input too, by that version's
/// rule; such a file is read as IR 4, where those are constants (runtimes treat them so).
[[nodiscard]] Model read_onnx(const std::filesystem::path& path);

/// The same from memory. `base_folder` is where external data lies; empty refuses external data. `name` is for
/// messages. With an `owner`, which keeps the bytes alive, the model's weights are parts of them; without one they are
/// copied.
[[nodiscard]] Model parse_onnx(std::string_view bytes, const std::filesystem::path& base_folder, std::string name,
                               std::shared_ptr<const void> owner = nullptr);

enum class ExternalData : std::uint8_t {
  automatic,  ///< Where the tensors do not fit into protobuf's 2 GiB.
  never,      ///< Error if the file would exceed protobuf's 2 GiB.
  always,
};

struct WriteOptions {
  ExternalData external_data = ExternalData::automatic;
  std::size_t external_above = 4096;  ///< Bytes; smaller tensors stay in the file.
};

/// Writes the model, with external data to `<path>.data` beside it. Each file is whole or not there: it is written
/// under a temporary name, flushed to disk, then renamed. Returns the file of external data, where one was written.
/// Throws Error for a full disk and the like.
std::optional<std::filesystem::path> write_onnx(const Model& model, const std::filesystem::path& path,
                                                const WriteOptions& options = {});

/// Returns the bytes of all initializers and of all tensors in attributes, those of sub-graphs included.
[[nodiscard]] std::size_t weight_bytes(const Model& model);

/// Models with more weight_bytes than this go through files: serialize_onnx has to stay within protobuf's 2 GiB.
inline constexpr std::size_t largest_serialized_weights = std::size_t{3} << 29;

/// The file's bytes, all data inside.
[[nodiscard]] std::string serialize_onnx(const Model& model);

}  // namespace graft::onnx

// A network that `graft convert --cut` has cut in two: the file that names both halves.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "onnx/model.hpp"

namespace graft {

/// Of the file.
inline constexpr std::string_view cut_schema = "graft.cut/1";

struct CutNetwork {
  onnx::Model tensorrt;
  onnx::Model host;
  bool tensorrt_is_first = true;
  std::vector<std::string> outputs = {};  ///< Of the whole network, in its order.

  [[nodiscard]] const onnx::Model& first() const { return tensorrt_is_first ? tensorrt : host; }
  [[nodiscard]] const onnx::Model& second() const { return tensorrt_is_first ? host : tensorrt; }
};

/// By the end of its name, ".cut.json".
[[nodiscard]] bool is_cut_network(const std::filesystem::path& path);

/// Reads the file and both halves, which lie beside it. Throws Error naming the file and the key for anything
/// malformed, and for an output that neither half has.
[[nodiscard]] CutNetwork read_cut_network(const std::filesystem::path& path);

/// The whole network in one model again.
[[nodiscard]] onnx::Model join(const CutNetwork& network);

}  // namespace graft

// Reading a network with all that is known of its file.
#pragma once

#include <cstddef>
#include <filesystem>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "graft/toolkit/import.hpp"
#include "import/origin.hpp"
#include "onnx/model.hpp"
#include "passes/cleanup/frozen_sizes.hpp"

namespace graft::toolkit {

using InputShapes = std::map<std::string, Shape, std::less<>>;

[[nodiscard]] InputShapes to_internal(const Shapes& shapes);

/// Reads as `load` does, and infers nothing. `shapes` are for formats that need them while they read; where the file
/// does not fit them the message also tells the inputs that the file itself has, and calls what was given
/// `shapes_name`.
[[nodiscard]] graft::onnx::Model read(const std::filesystem::path& file, const ImportOptions& options,
                                      const InputShapes& shapes, std::string_view shapes_name, Origin* origin = nullptr,
                                      std::function<void(std::size_t done, std::size_t total)> progress = {});

/// What the file's own sizes left in a network that was read with the shapes of the options.
[[nodiscard]] std::vector<passes::FrozenSize> frozen_sizes_of(const graft::onnx::Model& model,
                                                              const std::filesystem::path& file,
                                                              const ImportOptions& options);

}  // namespace graft::toolkit

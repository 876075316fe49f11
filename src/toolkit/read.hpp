// Reads a network and the facts about its file.
#pragma once

#include <cstddef>
#include <filesystem>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "graft/report/model.hpp"
#include "graft/toolkit/import.hpp"
#include "onnx/model.hpp"
#include "passes/cleanup/frozen_sizes.hpp"

namespace graft::toolkit {

using InputShapes = std::map<std::string, Shape, std::less<>>;

[[nodiscard]] InputShapes to_internal(const Shapes& shapes);

/// Reads a network as `load` does, without inferring shapes. `shapes` are for formats whose readers need them. Sets
/// `origin`, unless it is null, to the format and the nodes of the file; calls `progress` while it reads. Throws the
/// errors of `load`; if the shapes do not fit, the message also lists the inputs that the file declares.
[[nodiscard]] graft::onnx::Model read(const std::filesystem::path& file, const ImportOptions& options,
                                      const InputShapes& shapes, report::Origin* origin = nullptr,
                                      std::function<void(std::size_t done, std::size_t total)> progress = {});

/// Returns the nodes that only fit the input sizes declared in the file, if the network was read with other sizes in
/// the options.
[[nodiscard]] std::vector<passes::FrozenSize> frozen_sizes_of(const graft::onnx::Model& model,
                                                              const std::filesystem::path& file,
                                                              const ImportOptions& options);

}  // namespace graft::toolkit

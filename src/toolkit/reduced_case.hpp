// Writes the smallest part of a model that shows a difference or a failure.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "verify/localize/layers.hpp"

namespace graft::toolkit {

struct ReducedFiles {
  std::string candidate;  ///< The ONNX file of the part of the candidate.
  std::string reference;  ///< The ONNX file of the corresponding part of the reference; empty for a failure.
  std::string inputs;     ///< The .npz file of the inputs of both parts; empty if they have no inputs.
  [[nodiscard]] std::vector<std::string> names() const;
};

/// Returns the names of the files, which are next to `path`, the file of the candidate. Throws Error for a name that
/// does not end in .onnx.
[[nodiscard]] ReducedFiles reduced_files(const std::string& path);

/// Writes the part in which the models first differ, or the part that does not run. Returns nothing where the report
/// has neither.
[[nodiscard]] std::optional<ReducedFiles> write_reduced(const std::string& path, const verify::LayerReport& report);

}  // namespace graft::toolkit

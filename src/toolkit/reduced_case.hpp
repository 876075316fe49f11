// Writes the smallest part of a model that shows a difference or a failure.
#pragma once

#include <optional>
#include <string>

#include "graft/report/layers.hpp"
#include "verify/localize/layers.hpp"

namespace graft::toolkit {

using report::ReducedFiles;

/// Returns the names of the files, which are next to `path`, the file of the candidate. Throws Error for a name that
/// does not end in .onnx.
[[nodiscard]] ReducedFiles reduced_files(const std::string& path);

/// Writes the part in which the models first differ, or the part that does not run. Returns nothing where the report
/// has neither.
[[nodiscard]] std::optional<ReducedFiles> write_reduced(const std::string& path, const verify::LayerReport& report);

}  // namespace graft::toolkit

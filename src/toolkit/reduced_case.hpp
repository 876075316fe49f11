// The smallest part of a model in which a difference or a failure shows, as files.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "verify/localize/layers.hpp"

namespace graft::toolkit {

struct ReducedFiles {
  std::string candidate;  ///< The part of the candidate, ONNX.
  std::string reference;  ///< The same part of the reference; empty where the candidate does not run.
  std::string inputs;     ///< What both are given, .npz; empty if they take nothing.
  [[nodiscard]] std::vector<std::string> names() const;
};

/// The files beside `path`, which is the candidate's. Throws Error for a name that does not end in .onnx.
[[nodiscard]] ReducedFiles reduced_files(const std::string& path);

/// Writes the part where the models part, or the one that does not run. Nothing where the report has neither.
[[nodiscard]] std::optional<ReducedFiles> write_reduced(const std::string& path, const verify::LayerReport& report);

}  // namespace graft::toolkit

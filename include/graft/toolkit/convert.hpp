// Rewrites a model so that TensorRT can run it.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "graft/report/convert.hpp"
#include "graft/toolkit/export.hpp"
#include "graft/toolkit/import.hpp"
#include "graft/toolkit/model.hpp"
#include "graft/toolkit/verify.hpp"

namespace graft::toolkit {

using report::ConvertOptions;
using report::ConvertReport;
using report::OperatorChoice;
using report::Plugins;
using report::Rewrite;

/// Returns the names of the passes in the order in which they run.
[[nodiscard]] GRAFT_API std::vector<std::string> pass_names();

/// Rewrites a copy of the model. Runs on the CPU prove each rewrite; a rewrite whose proof disagrees is rejected. The
/// names of inputs and outputs are kept. Converting a converted model changes nothing. The check of the result starts
/// TensorRT as `build` does, in a child process that may crash.
///
/// Throws Error for an unknown pass or release, shapes of `inspect` that the inputs cannot have, a file of rules that
/// cannot be read, and an inconsistent model; Error (missing_tool) with `prove` in a build without a CPU engine;
/// Cancelled.
[[nodiscard]] GRAFT_API ConvertReport convert(const Model& model, const ConvertOptions& options = {});

/// Reads a network, with the shapes of the options and of the rules, and converts it. `import.watch` is ignored. Throws
/// the errors of `load` and of `convert`.
[[nodiscard]] GRAFT_API ConvertReport convert(const std::filesystem::path& file, const ImportOptions& import,
                                              const ConvertOptions& options = {});

/// Writes the model of a report as Model::save does, and sets `output`, `data_file` and `seconds.write`.
GRAFT_API void save(ConvertReport& report, const std::filesystem::path& output);

}  // namespace graft::toolkit

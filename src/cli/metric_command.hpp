// graft quantize --metric: how good a model is, as a command of the user's says it.
#pragma once

#include <filesystem>
#include <functional>
#include <string>

#include "cli/console.hpp"
#include "toolkit/quantize.hpp"

namespace graft::cli {

/// The command for the shell: the file's name in place of every {}, or after it. A name that holds only what every
/// shell takes as it is stays without quotes, so that {} may also stand between some.
[[nodiscard]] std::string with_model(const std::string& command, const std::filesystem::path& model);

/// What measures a model by such a command; with -v its standard error is shown. Ctrl-C ends the command too.
[[nodiscard]] std::function<double(const onnx::Model&)> metric_of(const Console& console, const std::string& command);

}  // namespace graft::cli

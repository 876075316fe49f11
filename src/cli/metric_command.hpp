// graft quantize --metric: how good a model is, as a command of the user's says it.
#pragma once

#include <filesystem>
#include <string>

#include "cli/console.hpp"
#include "graph/model.hpp"

namespace graft::cli {

/// The command for the shell: the file's name in place of every {}, or behind it. A name that holds only what every
/// shell takes as it is stays without quotes, so that {} may also stand between some.
[[nodiscard]] std::string with_model(const std::string& command, const std::filesystem::path& model);

/// Writes the model to a temporary file, runs the command and reads the number in the last line of its standard output
/// that is not blank; with -v its standard error is shown. Throws Error, quoting the command and the end of its
/// standard error, where it fails or prints no finite number. Ctrl-C ends the command too.
[[nodiscard]] double measure(const Console& console, const std::string& command, const Model& model);

}  // namespace graft::cli

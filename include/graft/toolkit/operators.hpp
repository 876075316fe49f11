// Operators of the application's own, beside Graft's.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "graft/toolkit/export.hpp"

namespace graft::toolkit {

/// Loads a library of operators, as `graft new` starts one (docs/guide/add_an_operator.md), and returns their names.
/// From then on all of the toolkit knows them as it knows Graft's own: CPU kernels, ONNX functions, fusions, int8; and
/// `build` loads the library's plugins into TensorRT. To be called before the models that have these operators are
/// loaded; a library that is loaded already stays as it is.
///
/// Loading a library runs its code, and it stays loaded to the end of the process. Throws Error (bad_input) for a file
/// that is no such library or was built with the headers of another Graft, for an operator whose name is taken, and,
/// naming the line, for a fusion or a function that cannot be read, or that has what ONNX does not have.
GRAFT_API std::vector<std::string> load_operators(const std::filesystem::path& library);

}  // namespace graft::toolkit

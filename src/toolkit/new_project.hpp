// `graft new`: writes a project with an operator outside Graft, or adds an operator to such a project, from the
// templates in templates/operators.
#pragma once

#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "graft/report/new.hpp"

namespace graft::toolkit {

/// A file of templates/operators.
struct TemplateFile {
  std::string_view path;  ///< "common/tests/test_operators.py"
  std::string_view text;
};
/// Returns the files of templates/operators. CMake generates the definition.
[[nodiscard]] std::span<const TemplateFile> template_files();

/// Returns the kinds of operators: the folders of templates/operators except `common`.
[[nodiscard]] std::vector<std::string> project_kinds();
/// Returns the default operator name of each kind.
[[nodiscard]] std::vector<std::string> template_operator_names();

struct NewProject {
  /// The folder of a new project, whose name is the last part of the path, or of an existing project, to which an
  /// operator is added.
  std::filesystem::path folder;
  std::string kind = "elementwise";
  std::string operator_name = {};  ///< "BetaSwish"; empty, only in a new project: the name in the template.
};

/// Writes the project completely or not at all. Where the folder is already a project of `graft new`, adds the named
/// operator: its folder, and its line in the list of operators. Throws Error for a folder with other contents or that
/// cannot be written, for an operator that exists already, and for a name that C++, CMake, ONNX or Graft reserves.
[[nodiscard]] report::NewReport write_project(const NewProject& project);

}  // namespace graft::toolkit

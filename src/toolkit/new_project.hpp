// `graft new`: writes a project with an operator outside Graft, or adds an operator to such a project, from the
// templates in templates/operators.
#pragma once

#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

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

struct WrittenProject {
  std::filesystem::path folder;
  std::string name;
  std::string operator_name;
  std::string operator_folder;
  bool was_there = false;          ///< Whether the project existed and the operator was added to it.
  std::vector<std::string> files;  ///< Files that were written or changed, relative to the folder, sorted.
  /// Whether Graft's CMake package is next to the program, as in an installation and a wheel; not in a build tree.
  bool has_package = false;
  /// The folder of this package for CMAKE_PREFIX_PATH; nothing where CMake finds the package without it.
  std::optional<std::string> package_folder;
  /// The name by which a shell starts this program: `graft` where PATH leads to it, otherwise its path.
  std::string program;
  /// The name by which a shell starts the Python that has the packages for the operators' networks: `python3` or a
  /// path.
  std::string python;
  bool is_configured = false;  ///< Whether the project's folder `build` is configured; CMake then rereads the list.
};

/// Writes the project completely or not at all. Where the folder is already a project of `graft new`, adds the named
/// operator: its folder, and its line in the list of operators. Throws Error for a folder with other contents or that
/// cannot be written, for an operator that exists already, and for a name that C++, CMake, ONNX or Graft reserves.
[[nodiscard]] WrittenProject write_project(const NewProject& project);

}  // namespace graft::toolkit

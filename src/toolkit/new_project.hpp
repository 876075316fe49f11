// `graft new`: a project with an operator outside Graft, or one more operator in it, from the templates in
// templates/operators.
#pragma once

#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace graft::toolkit {

/// A file of templates/operators. Defined by the build.
struct TemplateFile {
  std::string_view path;  ///< "common/tests/test_operators.py"
  std::string_view text;
};
[[nodiscard]] std::span<const TemplateFile> template_files();

/// What an operator can be like: the folders of templates/operators beside `common`.
[[nodiscard]] std::vector<std::string> project_kinds();
/// What the operator of each is called where no name is given.
[[nodiscard]] std::vector<std::string> template_operator_names();

struct NewProject {
  /// Of a new project, whose name is its last part, or of a project that is there and gets one more operator.
  std::filesystem::path folder;
  std::string kind = "elementwise";
  std::string operator_name = {};  ///< "BetaSwish"; empty: that of the template, in a new project.
};

struct WrittenProject {
  std::filesystem::path folder;
  std::string name;
  std::string operator_name;
  std::string operator_folder;
  bool was_there = false;          ///< The operator was added to a project.
  std::vector<std::string> files;  ///< That were written or, of a list of operators, changed; in the folder, sorted.
  /// Graft's CMake package lies beside the program, as it does in an installation, and not in a wheel or a build tree.
  bool has_package = false;
  /// Where CMake finds this package, if it does not look there anyway.
  std::optional<std::string> package_folder;
  /// What a shell calls this program by: `graft` where PATH leads to it, else its path.
  std::string program;
  /// The same of the Python that has what the networks of the operators are written with: `python3`, or a path.
  std::string python;
  bool is_configured = false;  ///< CMake has made the project's `build`, and looks at its list again by itself.
};

/// Writes all of it, or nothing. Where the folder is such a project, adds the operator that is named: its folder, and
/// its line in the list. Throws Error for a folder that is something else or cannot be written, for an operator that is
/// there, and for a name that C++, CMake, ONNX or Graft has another use for.
[[nodiscard]] WrittenProject write_project(const NewProject& project);

}  // namespace graft::toolkit

// Writes a project with an operator that is not part of Graft, or adds an operator to such a project.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "graft/report/new.hpp"
#include "graft/toolkit/export.hpp"

namespace graft::toolkit {

using report::NewReport;

/// Returns the kinds of operators for which there are templates: "elementwise", "reduction" ...
[[nodiscard]] GRAFT_API std::vector<std::string> project_kinds();

/// Returns the default operator name of each kind, in the order of project_kinds().
[[nodiscard]] GRAFT_API std::vector<std::string> template_operator_names();

/// The project or the operator that write_project writes.
struct NewProject {
  /// The folder of a new project, whose name is the last part of the path, or of an existing project, to which an
  /// operator is added.
  std::filesystem::path folder;
  std::string kind = "elementwise";  ///< The template of the operator, one of project_kinds().
  /// The name of the operator, such as "BetaSwish". If empty, the name of the node's operator or, without a node and
  /// only in a new project, the name in the template.
  std::string operator_name = {};
  /// A model with a node for whose operator the project is written, instead of the template. The definition has the
  /// node's ports, with types and ranks as far as they are known, and its attributes, with its values as defaults; the
  /// kernels have to be written. If empty, no model is read.
  std::filesystem::path model = {};
  std::string node = {};  ///< The name of the node, or of its first output if it has no name.
};

/// Writes the project completely or not at all. Where the folder is already a project of this function, adds the named
/// operator: its folder, and its line in the list of operators. Throws Error for a folder with other contents or that
/// cannot be written, for an operator that exists already, and for a name that C++, CMake, ONNX or Graft reserves; for
/// a node that is not in the model, or whose operator needs no definition of a user, because ONNX or Graft has it; and
/// the errors of load().
[[nodiscard]] GRAFT_API NewReport write_project(const NewProject& project);

}  // namespace graft::toolkit

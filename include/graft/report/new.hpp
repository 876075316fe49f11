// The report of `new`: the project that was written, or the operator that was added to one.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "graft/report/field.hpp"

namespace graft::report {

struct NewReport {
  std::filesystem::path folder;
  std::string name;
  std::string operator_name;
  std::string operator_folder;
  std::string kind;
  bool was_there = false;
  std::vector<std::string> files;
  /// The commands to run next. The program sets them, because the library does not know the names of the program's
  /// options.
  std::vector<std::string> next;
  /// The files in which the computation of an operator of a node has to be written; empty for a template.
  std::vector<std::string> to_write;
  /// Whether Graft's CMake package is next to the program. It is in an installation and in a wheel, but not in a build
  /// tree.
  bool has_package = false;
  /// The folder of this package for CMAKE_PREFIX_PATH; empty if CMake finds the package without it.
  std::optional<std::string> package_folder;
  /// The command that starts this program in a shell: `graft` if PATH leads to it, otherwise its path.
  std::string program;
  /// The command that starts the Python interpreter that has the packages for the operators' networks: `python3` or a
  /// path.
  std::string python;
  /// Whether the project's folder `build` is configured. The next build then rereads the list of operators, so CMake
  /// need not be run again.
  bool is_configured = false;

  static constexpr Schema schema{
      "graft new", 1,
      "The project that was written, or the operator that was added to one, and the commands that lead to an engine."};
  static constexpr auto fields() {
    return std::tuple{
        field("folder", &NewReport::folder, "The folder of the project."),
        field("name", &NewReport::name, "The name of the project and of its library."),
        field("operator_name", "operator", &NewReport::operator_name, "The operator that was written."),
        field(
            "kind", "like", &NewReport::kind,
            "The template of the operator: 'elementwise', 'reduction', 'two_inputs' or 'data_sizes'; 'node' if it was "
            "written from a node of a model."),
        field("was_there", "added", &NewReport::was_there,
              "Whether the project existed and the operator was added to it."),
        field("files", &NewReport::files, "The files that were written or changed, relative to the folder, sorted."),
        field("to_write", &NewReport::to_write,
              "The files in which the computation has to be written; empty for an operator of a template."),
        field("next", &NewReport::next, "The commands that lead from the project to an engine."),
    };
  }
};

}  // namespace graft::report

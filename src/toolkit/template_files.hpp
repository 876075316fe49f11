// The templates of `graft new`.
#pragma once

#include <span>
#include <string_view>

namespace graft::toolkit {

/// A file of the folder templates/operators, from which `graft new` writes projects. It is part of the program.
struct TemplateFile {
  std::string_view path;  ///< The path in templates/operators, for example "common/tests/test_operators.py".
  std::string_view text;
};

/// Returns the files of templates/operators. CMake generates the definition.
[[nodiscard]] std::span<const TemplateFile> template_files();

}  // namespace graft::toolkit

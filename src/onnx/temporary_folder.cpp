// Creates and removes folders, and removes the folders of killed processes.
#include "onnx/temporary_folder.hpp"

#include <fmt/format.h>

#include <cerrno>
#include <cstdlib>
#include <string>
#include <string_view>
#include <system_error>

#include "core/leftovers.hpp"
#include "graft/error.hpp"

namespace graft::onnx {

TemporaryFolder::TemporaryFolder() {
  std::error_code failed;
  const std::filesystem::path base = std::filesystem::temp_directory_path(failed);
  constexpr std::string_view prefix = "graft-";
  constexpr std::string_view random = "XXXXXX";
  if (!failed) {
    remove_leftovers(base, [&](std::string_view name) {
      return name.starts_with(prefix) && name.size() == prefix.size() + random.size();
    });
  }
  std::string name = (base / prefix).string().append(random);
  if (failed || ::mkdtemp(name.data()) == nullptr) {
    throw Error(
        fmt::format("{}: no temporary folder can be created: {}\nSet TMPDIR to a folder in which you can create files",
                    name, failed ? failed.message() : std::generic_category().message(errno)));
  }
  path_ = name;
  lock_ = mark_temporary(path_);
}

TemporaryFolder::~TemporaryFolder() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

}  // namespace graft::onnx

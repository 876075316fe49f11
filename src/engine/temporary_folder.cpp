// mkdtemp and its removal.
#include "engine/temporary_folder.hpp"

#include <fmt/format.h>

#include <cerrno>
#include <cstdlib>
#include <system_error>

#include "graft/error.hpp"

namespace graft::engine {

TemporaryFolder::TemporaryFolder() {
  std::error_code failed;
  const std::filesystem::path base = std::filesystem::temp_directory_path(failed);
  std::string name = (base / "graft-XXXXXX").string();
  if (failed || ::mkdtemp(name.data()) == nullptr) {
    throw Error(fmt::format("{}: no temporary folder can be made: {}\nSet TMPDIR to a folder with space", name,
                            failed ? failed.message() : std::generic_category().message(errno)));
  }
  path_ = name;
}

TemporaryFolder::~TemporaryFolder() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

}  // namespace graft::engine

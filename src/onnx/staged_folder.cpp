// Creates the folder under a temporary name and renames it.
#include "onnx/staged_folder.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>

#include "core/leftovers.hpp"
#include "graft/error.hpp"

namespace graft::onnx {

namespace fs = std::filesystem;

StagedFolder::StagedFolder(fs::path target) : target_(std::move(target)) {
  const fs::path parent = target_.parent_path();
  std::error_code ignored;
  if (!parent.empty() && !fs::is_directory(parent, ignored)) {
    throw Error(fmt::format("{}: there is no folder {}\nCreate it first: mkdir -p {}", target_.string(),
                            parent.string(), parent.string()));
  }
  if (fs::exists(fs::symlink_status(target_, ignored))) fail_taken();
  const std::string prefix = fmt::format(".{}.", target_.filename().string());
  constexpr std::string_view random = "XXXXXX";
  remove_leftovers(parent, [&](std::string_view name) {
    return name.starts_with(prefix) && name.size() == prefix.size() + random.size();
  });
  std::string name = (parent / prefix).string().append(random);
  if (::mkdtemp(name.data()) == nullptr) fail();
  staged_ = name;
  lock_ = mark_temporary(staged_);
  constexpr ::mode_t usual = 0777;
  const ::mode_t mask = ::umask(0);
  ::umask(mask);
  if (::chmod(staged_.c_str(), usual & ~mask) != 0) fail();
}

StagedFolder::~StagedFolder() {
  std::error_code ignored;
  if (!staged_.empty()) fs::remove_all(staged_, ignored);
}

void StagedFolder::commit() {
  unmark_temporary(staged_);
  if (::renameat2(AT_FDCWD, staged_.c_str(), AT_FDCWD, target_.c_str(), RENAME_NOREPLACE) != 0) {
    if (errno == EEXIST) fail_taken();
    // The file system does not support that flag. rename() does not replace a folder that is not empty.
    if (errno != EINVAL || ::rename(staged_.c_str(), target_.c_str()) != 0) fail();
  }
  staged_.clear();
}

void StagedFolder::fail() const {
  throw Error(fmt::format("{}: cannot be written: {}", target_.string(), std::generic_category().message(errno)));
}

void StagedFolder::fail_taken() const {
  throw Error(fmt::format("{}: it exists already and was not changed\nPass another name", target_.string()));
}

}  // namespace graft::onnx

// Finds out with an advisory lock, which the system releases when its process ends, whether a temporary file is in use
// or was left by a killed process.
#include "core/leftovers.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <ctime>
#include <system_error>

namespace graft {
namespace {

namespace fs = std::filesystem;

constexpr std::time_t youngest_s = 60;
constexpr const char* mark = ".graft-temporary";

Descriptor open_quietly(int folder, const char* path) {
  return Descriptor(::openat(folder, path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY));
}

bool is_left(const fs::path& path) {
  Descriptor lock = open_quietly(AT_FDCWD, path.c_str());
  struct ::stat found {};
  const auto is_ours = [&] { return ::fstat(lock.get(), &found) == 0 && found.st_uid == ::geteuid(); };
  if (!is_ours()) return false;
  if (S_ISDIR(found.st_mode)) lock = open_quietly(lock.get(), mark);
  return is_ours() && S_ISREG(found.st_mode) && std::time(nullptr) - found.st_mtime >= youngest_s &&
         ::flock(lock.get(), LOCK_EX | LOCK_NB) == 0;
}

}  // namespace

void lock_temporary(int descriptor) { (void)::flock(descriptor, LOCK_EX | LOCK_NB); }

Descriptor mark_temporary(const fs::path& folder) {
  Descriptor lock(::open((folder / mark).c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
  if (lock.get() >= 0) lock_temporary(lock.get());
  return lock;
}

void unmark_temporary(const fs::path& folder) { (void)::unlink((folder / mark).c_str()); }

void remove_leftovers(const fs::path& folder, const std::function<bool(std::string_view)>& is_temporary) {
  std::error_code failed;
  for (fs::directory_iterator entry(folder.empty() ? "." : folder, failed), end; !failed && entry != end;
       entry.increment(failed)) {
    std::error_code ignored;
    if (is_temporary(entry->path().filename().native()) && is_left(entry->path())) {
      fs::remove_all(entry->path(), ignored);
    }
  }
}

}  // namespace graft

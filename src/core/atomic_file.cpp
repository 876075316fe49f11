// Writes files completely or not at all.
#include "core/atomic_file.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <string>
#include <system_error>

#include "core/leftovers.hpp"
#include "graft/error.hpp"

namespace graft {
namespace {

constexpr const char* suffix = ".tmp";

}  // namespace

void check_replaceable(const std::filesystem::path& path) {
  namespace fs = std::filesystem;
  std::error_code ignored;  // If the status of a path cannot be read, writing to it fails later with the reason.
  if (const fs::file_status found = fs::status(path, ignored); fs::exists(found) && !fs::is_regular_file(found)) {
    const char* const what = fs::is_directory(found) ? "this is a folder" : "this is a device, a pipe or a socket";
    throw Error(path.string() + ": " + what + "; pass the name of a regular file or a new name");
  }
  // If standard output is redirected to a file, /dev/stdout is a link to a regular file, which belongs to the system.
  const std::string folder = fs::weakly_canonical(fs::absolute(path, ignored).parent_path(), ignored).string();
  if (folder == "/dev" || folder == "/proc" || folder.starts_with("/proc/")) {
    throw Error(path.string() + ": " + folder + " is a system folder; write the file to another folder");
  }
}

AtomicFile::AtomicFile(std::filesystem::path path) : path_(std::move(path)) {
  check_replaceable(path_);
  const std::string prefix = path_.filename().string() + ".";
  remove_leftovers(path_.parent_path(), [&](std::string_view name) {
    return name.starts_with(prefix) && name.ends_with(suffix) &&
           name.find_first_not_of("0123456789-", prefix.size()) == name.size() - std::string_view(suffix).size();
  });
  static std::atomic<unsigned> next{0};
  do {
    temporary_ = path_.string() + "." + std::to_string(::getpid()) + "-" + std::to_string(next++) + suffix;
    descriptor_ = ::open(temporary_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
  } while (descriptor_ < 0 && errno == EEXIST);
  if (descriptor_ < 0) {
    temporary_.clear();
    fail("cannot be written");
  }
  lock_temporary(descriptor_);
}

AtomicFile::~AtomicFile() {
  if (descriptor_ >= 0) ::close(descriptor_);
  if (!temporary_.empty()) ::unlink(temporary_.c_str());
}

void AtomicFile::fail(const char* what) const {
  const int reason = errno;
  std::error_code ignored;
  const std::filesystem::path folder = path_.parent_path();
  const bool has_folder = folder.empty() || std::filesystem::exists(folder, ignored);
  throw Error(path_.string() + ": " + what + ": " + std::generic_category().message(reason) +
              (has_folder ? "" : "\nCreate its folder first: mkdir -p " + folder.string()));
}

void AtomicFile::write(std::string_view bytes) {
  while (!bytes.empty()) {
    const ::ssize_t written = ::write(descriptor_, bytes.data(), bytes.size());
    if (written < 0) {
      if (errno == EINTR) continue;
      fail("cannot be written");
    }
    bytes.remove_prefix(static_cast<std::size_t>(written));
  }
}

void AtomicFile::flush() {
  // EINVAL: the file system does not support fsync
  if (::fsync(descriptor_) != 0 && errno != EINVAL) fail("cannot be written");
}

void AtomicFile::commit() {
  flush();
  struct ::stat existing {};
  if (::lstat(path_.c_str(), &existing) == 0 && S_ISREG(existing.st_mode) &&
      ::fchmod(descriptor_, existing.st_mode & 0777U) != 0) {
    fail("the permissions of the existing file cannot be copied to the new one");
  }
  if (::rename(temporary_.c_str(), path_.c_str()) != 0) fail("cannot be renamed into place");
  temporary_.clear();
}

void write_file(const std::filesystem::path& path, std::string_view bytes) {
  AtomicFile file(path);
  file.write(bytes);
  file.commit();
}

}  // namespace graft

// Files that are written whole or not at all.
#include "graph/atomic_file.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <string>
#include <system_error>

#include <fmt/format.h>

#include "graft/error.hpp"

namespace graft {

AtomicFile::AtomicFile(std::filesystem::path path) : path_(std::move(path)) {
  std::string name = path_.string() + ".XXXXXX";
  descriptor_ = ::mkostemp(name.data(), O_CLOEXEC);
  if (descriptor_ < 0) fail("cannot be written");
  temporary_ = name;
}

AtomicFile::~AtomicFile() {
  if (descriptor_ >= 0) ::close(descriptor_);
  if (!temporary_.empty()) ::unlink(temporary_.c_str());
}

void AtomicFile::fail(const char* what) const {
  throw Error(fmt::format("{}: {}: {}", path_.string(), what, std::generic_category().message(errno)));
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
  if (::fsync(descriptor_) != 0 && errno != EINVAL) fail("cannot be written");  // EINVAL: a file system without it
}

void AtomicFile::commit() {
  flush();
  // mkostemp makes the file readable by its owner only; a finished file has the mode that any new file would have.
  struct ::stat existing {};
  ::mode_t mode = 0;
  if (::stat(path_.c_str(), &existing) == 0) {
    mode = existing.st_mode & 0777U;
  } else {
    const ::mode_t mask = ::umask(0);
    ::umask(mask);
    mode = 0666U & ~mask;
  }
  if (::fchmod(descriptor_, mode) != 0) fail("cannot be given its mode");
  if (::rename(temporary_.c_str(), path_.c_str()) != 0) fail("cannot be renamed into place");
  temporary_.clear();
}

void write_file(const std::filesystem::path& path, std::string_view bytes) {
  AtomicFile file(path);
  file.write(bytes);
  file.commit();
}

}  // namespace graft

// A file mapped into memory for reading.
#include "graph/mapped_file.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>

#include "graft/error.hpp"

namespace graft {
namespace {

[[noreturn]] void refuse(const std::filesystem::path& path, int error) {
  throw Error(fmt::format("{}: cannot be read: {}", path.string(), std::generic_category().message(error)));
}

struct Descriptor {
  int number;
  ~Descriptor() {
    if (number >= 0) ::close(number);
  }
};

}  // namespace

std::shared_ptr<const MappedFile> MappedFile::open(const std::filesystem::path& path) {
  // O_NONBLOCK: opening a pipe must not hang; it is refused below.
  const Descriptor file{::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK)};
  if (file.number < 0) refuse(path, errno);
  struct ::stat status {};
  if (::fstat(file.number, &status) != 0) refuse(path, errno);
  if (S_ISDIR(status.st_mode)) refuse(path, EISDIR);
  if (!S_ISREG(status.st_mode)) throw Error(fmt::format("{}: cannot be read: it is not a regular file", path.string()));
  std::shared_ptr<MappedFile> result(new MappedFile());  // NOLINT(cppcoreguidelines-owning-memory): private constructor
  if (status.st_size == 0) return result;
  void* address = ::mmap(nullptr, static_cast<std::size_t>(status.st_size), PROT_READ, MAP_PRIVATE, file.number, 0);
  if (address == MAP_FAILED) refuse(path, errno);
  result->address_ = static_cast<const char*>(address);
  result->size_ = static_cast<std::size_t>(status.st_size);
  return result;
}

MappedFile::~MappedFile() {
  if (address_ != nullptr) ::munmap(const_cast<char*>(address_), size_);
}

}  // namespace graft

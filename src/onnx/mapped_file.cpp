// Opens a file, checks its kind and size, then copies or maps it.
#include "onnx/mapped_file.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <functional>
#include <optional>
#include <system_error>
#include <utility>

#include "graft/error.hpp"

namespace graft::onnx {
namespace {

[[noreturn]] void refuse(const std::filesystem::path& path, int error) {
  throw Error(fmt::format("{}: cannot be read: {}", path.string(), std::generic_category().message(error)));
}

constexpr std::size_t largest_copy = std::size_t{64} << 20U;

/// The number of mapped files that a signal handler can find. Files beyond this number are not registered.
constexpr std::size_t most_known = 256;
std::array<std::atomic<const MappedFile*>, most_known> mapped_files{};

void replace_known(const MappedFile* from, const MappedFile* to) {
  for (std::atomic<const MappedFile*>& slot : mapped_files) {
    const MappedFile* expected = from;
    if (slot.compare_exchange_strong(expected, to)) return;
  }
}

struct Descriptor {
  int number;
  ~Descriptor() {
    if (number >= 0) ::close(number);
  }
};

// With O_NONBLOCK, opening a pipe does not wait for a writer; the pipe is refused after it is open.
Descriptor open_for_reading(const std::filesystem::path& path) {
  return {::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY)};
}

/// Returns up to `size` bytes from the beginning of an open file, fewer if the file has become shorter, or nothing if
/// reading fails.
std::optional<std::string> read_up_to(int file, std::size_t size) {
  std::string bytes(size, '\0');
  std::size_t count = 0;
  while (count < size) {
    const ::ssize_t got = ::read(file, bytes.data() + count, size - count);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return std::nullopt;
    if (got == 0) break;
    count += static_cast<std::size_t>(got);
  }
  bytes.resize(count);
  return bytes;
}

}  // namespace

std::shared_ptr<const MappedFile> MappedFile::open(const std::filesystem::path& path, std::size_t most) {
  const Descriptor file = open_for_reading(path);
  struct ::stat status {};
  if (file.number < 0 || ::fstat(file.number, &status) != 0) refuse(path, errno);
  if (S_ISDIR(status.st_mode)) refuse(path, EISDIR);
  if (!S_ISREG(status.st_mode)) throw Error(fmt::format("{}: cannot be read: it is not a regular file", path.string()));
  const auto size = static_cast<std::size_t>(status.st_size);
  if (size > most)
    throw Error(fmt::format("{}: the file has {} bytes; it may have at most {}", path.string(), size, most));
  std::shared_ptr<MappedFile> result(new MappedFile());  // NOLINT(cppcoreguidelines-owning-memory): private constructor
  if (size <= largest_copy) {
    std::optional<std::string> bytes = read_up_to(file.number, size);
    if (!bytes) refuse(path, errno);
    result->copy_ = std::move(*bytes);
    result->address_ = result->copy_.data();
    result->size_ = result->copy_.size();
    return result;
  }
  void* address = ::mmap(nullptr, size, PROT_READ, MAP_PRIVATE, file.number, 0);
  if (address == MAP_FAILED) refuse(path, errno);
  result->address_ = static_cast<const char*>(address);
  result->size_ = size;
  result->is_mapped_ = true;
  result->path_ = path.string();
  replace_known(nullptr, result.get());
  return result;
}

MappedFile::~MappedFile() {
  if (!is_mapped_) return;
  replace_known(this, nullptr);
  ::munmap(const_cast<char*>(address_), size_);
}

const char* MappedFile::path_at(const void* address) {
  const std::less<> before;
  for (const std::atomic<const MappedFile*>& slot : mapped_files) {
    const MappedFile* file = slot.load();
    if (file == nullptr || before(address, file->address_) || !before(address, file->address_ + file->size_)) continue;
    return file->path_.c_str();
  }
  return nullptr;
}

std::string beginning_of_file(const std::filesystem::path& path, std::size_t most) {
  const Descriptor file = open_for_reading(path);
  struct ::stat status {};
  if (file.number < 0 || ::fstat(file.number, &status) != 0 || !S_ISREG(status.st_mode)) return {};
  return read_up_to(file.number, std::min(most, static_cast<std::size_t>(status.st_size))).value_or(std::string());
}

}  // namespace graft::onnx

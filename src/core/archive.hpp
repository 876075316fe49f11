// Values as bytes, for processes of the same version of Graft on machines of the same kind. A structure takes part with
// a function template `archive(archive, structure)` in its namespace, which passes its members to the archive.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "graft/error.hpp"

namespace graft {

/// Appends values to a string of bytes.
class ArchiveWriter {
 public:
  template <class... Values>
  void operator()(Values&... values) {
    (write(values), ...);
  }
  [[nodiscard]] std::string& bytes() { return bytes_; }

 private:
  template <class Value>
  void write(Value& value) {
    if constexpr (std::is_arithmetic_v<Value>) {
      // The unused bytes of a long double are not copied, because their values are random.
      constexpr std::size_t size = std::is_same_v<Value, long double> && sizeof(long double) == 16 ? 10 : sizeof(Value);
      bytes_.append(reinterpret_cast<const char*>(&value), size);
      bytes_.append(sizeof(Value) - size, '\0');
    } else {
      archive(*this, value);
    }
  }
  void write(std::string& text) {
    write_size(text.size());
    bytes_ += text;
  }
  template <class Value>
  void write(std::optional<Value>& value) {
    write_size(value.has_value() ? 1 : 0);
    if (value) write(*value);
  }
  template <class First, class Second>
  void write(std::pair<First, Second>& pair) {
    (*this)(pair.first, pair.second);
  }
  template <class Value>
  void write(std::vector<Value>& values) {
    write_size(values.size());
    for (Value& value : values) write(value);
  }
  void write_size(std::uint64_t size) { write(size); }

  std::string bytes_;
};

/// Reads the values that an ArchiveWriter has written. Throws Error (internal) for bytes that end too early: every size
/// is compared with the remaining bytes before it is used.
class ArchiveReader {
 public:
  explicit ArchiveReader(std::string_view bytes) : rest_(bytes) {}

  template <class... Values>
  void operator()(Values&... values) {
    (read(values), ...);
  }
  /// Throws Error (internal) if the reader has not read all bytes.
  void check_end() const {
    if (!rest_.empty()) fail();
  }

 private:
  [[noreturn]] static void fail() {
    throw Error(Error::Kind::internal,
                "the bytes of a part are damaged or come from another version of Graft\nInstall the same version of "
                "Graft on all machines");
  }
  std::string_view take(std::uint64_t size) {
    if (size > rest_.size()) fail();
    const std::string_view taken = rest_.substr(0, static_cast<std::size_t>(size));
    rest_.remove_prefix(taken.size());
    return taken;
  }
  template <class Value>
  void read(Value& value) {
    if constexpr (std::is_same_v<Value, bool>) {
      value = take(1).front() != '\0';
    } else if constexpr (std::is_arithmetic_v<Value>) {
      std::memcpy(&value, take(sizeof(Value)).data(), sizeof(Value));
    } else {
      archive(*this, value);
    }
  }
  void read(std::string& text) { text = take(read_size()); }
  template <class Value>
  void read(std::optional<Value>& value) {
    value.reset();
    if (read_size() != 0) read(value.emplace());
  }
  template <class First, class Second>
  void read(std::pair<First, Second>& pair) {
    (*this)(pair.first, pair.second);
  }
  template <class Value>
  void read(std::vector<Value>& values) {
    const std::uint64_t size = read_size();
    if (size > rest_.size()) fail();  // Every element takes at least one byte.
    values.clear();
    for (std::uint64_t i = 0; i < size; ++i) read(values.emplace_back());
  }
  std::uint64_t read_size() {
    std::uint64_t size = 0;
    read(size);
    return size;
  }

  std::string_view rest_;
};

}  // namespace graft

// Reads the input of a fuzzer piece by piece; zeros after its end.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>

namespace graft::fuzz {

class TakenBytes {
 public:
  explicit TakenBytes(std::string_view rest) : rest_(rest) {}
  [[nodiscard]] bool empty() const { return rest_.empty(); }
  template <class T>
  T take() {
    T value{};
    const std::size_t count = std::min(sizeof value, rest_.size());
    std::memcpy(&value, rest_.data(), count);
    rest_.remove_prefix(count);
    return value;
  }
  std::size_t below(std::size_t end) { return end == 0 ? 0 : take<std::uint8_t>() % end; }
  std::string take_text(std::size_t size) {
    const std::size_t count = std::min(size, rest_.size());
    std::string text(rest_.substr(0, count));
    rest_.remove_prefix(count);
    text.resize(size);
    return text;
  }

 private:
  std::string_view rest_;
};

}  // namespace graft::fuzz

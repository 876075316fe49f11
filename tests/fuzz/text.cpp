// Changes lines of a text.
#include "tests/fuzz/text.hpp"

#include <random>
#include <vector>

namespace graft::fuzz {

std::string change_text(std::string_view text, std::span<const std::string_view> words, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  std::vector<std::string> lines(1);
  for (const char c : text) {
    if (c == '\n') {
      lines.emplace_back();
    } else {
      lines.back() += c;
    }
  }
  const auto some_line = [&]() -> std::string& { return lines[random() % lines.size()]; };
  for (std::uint64_t change = 0; change <= seed % 4; ++change) {
    const std::string_view word = words[random() % words.size()];
    switch (random() % 6) {
      case 0: lines.push_back(some_line()); break;
      case 1:
        if (lines.size() > 1) lines.erase(lines.begin() + static_cast<std::ptrdiff_t>(random() % lines.size()));
        break;
      case 2: some_line().insert(0, random() % 8, ' '); break;
      case 3: some_line() += word; break;
      default: {
        std::string& line = some_line();
        const std::size_t begin = line.empty() ? 0 : random() % line.size();
        line.replace(begin, random() % 8, word);
      }
    }
  }
  std::string result;
  for (const std::string& line : lines) result += (result.empty() ? "" : "\n") + line;
  return result;
}

}  // namespace graft::fuzz

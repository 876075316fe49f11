// Keeps the lines of an exception's text that say something to a user.
#include "adapters/openvino/message.hpp"

#include <regex>
#include <vector>

namespace graft {
namespace {

std::string trim(std::string_view text) {
  const std::size_t first = text.find_first_not_of(" \t\r.:-");
  if (first == std::string_view::npos) return {};
  return std::string(text.substr(first, text.find_last_not_of(" \t\r.:") - first + 1));
}

/// Lines that say nothing of the model.
bool is_noise(std::string_view line) {
  for (const std::string_view start : {"FrontEnd API failed with", "Model wasn't fully converted", "Summary", "To facilitate the conversion"}) {
    if (line.starts_with(start)) return true;
  }
  return false;
}

}  // namespace

std::string shorten_openvino_message(std::string_view text) {
  static const std::regex place(R"((Exception from \S+:\d+:?)|(Check '.*' failed at \S+:\d+:?)|(\bat \S+\.[ch]pp:\d+:?)|(\S+\.cpp:\d+:?))");
  static const std::regex address("0x[0-9a-f]{6,}");
  constexpr std::size_t longest = 600;

  std::vector<std::string> lines;
  std::size_t begin = 0;
  while (begin <= text.size()) {
    std::size_t end = text.find('\n', begin);
    if (end == std::string_view::npos) end = text.size();
    std::string line(text.substr(begin, end - begin));
    line = std::regex_replace(line, place, "");
    line = trim(std::regex_replace(line, address, "..."));
    if (!line.empty() && !is_noise(line) && (lines.empty() || lines.back() != line)) lines.push_back(std::move(line));
    begin = end + 1;
  }

  std::string result;
  for (const std::string& line : lines) {
    if (!result.empty()) result += "; ";
    result += line;
  }
  if (result.empty()) result = "no reason given";
  if (result.size() > longest) result = result.substr(0, longest) + " ...";
  return result;
}

}  // namespace graft

// Extracts the lines of an exception's text that help a user.
#include "runtime/openvino/message.hpp"

#include <algorithm>

namespace graft::runtime {
namespace {

constexpr std::string_view edges = " \t\r.:-";

std::string trim(std::string_view text) {
  const std::size_t first = text.find_first_not_of(edges);
  if (first == std::string_view::npos) return {};
  return std::string(text.substr(first, text.find_last_not_of(edges) - first + 1));
}

bool is_source_place(std::string_view word) {
  return word.find(".cpp:") != std::string_view::npos || word.find(".hpp:") != std::string_view::npos;
}

/// Removes the words "Exception from", the condition of a failed check, positions in source files, and addresses, which
/// differ from run to run.
std::string clean(std::string_view line) {
  constexpr std::string_view frame = "Exception from ";
  constexpr std::string_view failed = "' failed at ";
  if (line.starts_with(frame)) line.remove_prefix(frame.size());
  if (line.starts_with("Check '") && line.find(failed) != std::string_view::npos) {
    line.remove_prefix(line.find(failed) + failed.size());
  }
  std::string result;
  while (!line.empty()) {
    const std::size_t end = std::min(line.find(' '), line.size());
    const std::string_view word = line.substr(0, end);
    line.remove_prefix(std::min(end + 1, line.size()));
    if (word.empty() || is_source_place(word)) continue;
    if (!result.empty()) result += ' ';
    result += word.starts_with("0x") && word.size() > 8 ? "..." : word;
  }
  return trim(result);
}

/// Returns whether a line contains no information about the model.
bool is_noise(std::string_view line) {
  for (const std::string_view start :
       {"FrontEnd API failed with", "Model wasn't fully converted", "Summary", "To facilitate the conversion"}) {
    if (line.starts_with(start)) return true;
  }
  // A Guard node of guards.cpp; the next line names the node that it guards.
  return line.starts_with("Node Guard_") && line.ends_with(" of type Reference");
}

}  // namespace

std::string shorten_openvino_message(std::string_view text) {
  constexpr std::size_t longest = 600;
  std::string result;
  std::string previous;
  while (!text.empty() && result.size() <= longest) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    const std::string line = clean(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
    if (line.empty() || is_noise(line) || line == previous) continue;
    if (!result.empty()) result += "; ";
    result += line;
    previous = line;
  }
  if (result.empty()) return "OpenVINO reported no reason";
  if (result.size() > longest) result = result.substr(0, longest) + " ...";
  return result;
}

}  // namespace graft::runtime

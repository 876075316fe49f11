// Computes the edit distance with transpositions (optimal string alignment).
#include "core/suggest.hpp"

#include <algorithm>
#include <cctype>

namespace graft {
namespace {

char lower(char c) { return static_cast<char>(std::tolower(static_cast<unsigned char>(c))); }

std::size_t distance(std::string_view a, std::string_view b) {
  std::vector<std::vector<std::size_t>> table(a.size() + 1, std::vector<std::size_t>(b.size() + 1));
  for (std::size_t i = 0; i <= a.size(); ++i) table[i][0] = i;
  for (std::size_t j = 0; j <= b.size(); ++j) table[0][j] = j;
  for (std::size_t i = 1; i <= a.size(); ++i) {
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const bool same = lower(a[i - 1]) == lower(b[j - 1]);
      table[i][j] = std::min({table[i - 1][j] + 1, table[i][j - 1] + 1, table[i - 1][j - 1] + (same ? 0 : 1)});
      if (i > 1 && j > 1 && lower(a[i - 1]) == lower(b[j - 2]) && lower(a[i - 2]) == lower(b[j - 1])) {
        table[i][j] = std::min(table[i][j], table[i - 2][j - 2] + 1);
      }
    }
  }
  return table[a.size()][b.size()];
}

}  // namespace

std::optional<std::string> nearest(std::string_view word, const std::vector<std::string>& allowed) {
  // The table of the edit distance grows with the product of both lengths, and names in a file may have any length.
  constexpr std::size_t longest = 128;
  if (word.size() > longest) return std::nullopt;
  std::optional<std::string> best;
  std::size_t fewest = std::max<std::size_t>(1, word.size() / 3) + 1;
  for (const std::string& candidate : allowed) {
    const auto [shorter, longer] = std::minmax({word.size(), candidate.size()});
    if (longer - shorter >= fewest) continue;
    const std::size_t edits = distance(word, candidate);
    if (edits < fewest) {
      fewest = edits;
      best = candidate;
    }
  }
  return best;
}

std::string no_attribute(std::string_view owner, std::string_view name, const std::vector<std::string>& known,
                         std::string_view where) {
  std::string names;
  for (const std::string& each : known) names += (names.empty() ? "" : ", ") + each;
  const auto meant = where.empty() ? nearest(name, known) : std::nullopt;
  return std::string(owner) + " has no attribute `" + std::string(name) + "`" + std::string(where) +
         (meant ? " (did you mean `" + *meant + "`?)" : "") +
         (names.empty() ? "; it has no attributes" : "; its attributes are " + names);
}

}  // namespace graft

// Computes the widths of cells and paints them.
#include "present/text/table.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "core/utf8.hpp"
#include "present/text/printable.hpp"

namespace graft::present {

std::string_view code_of(Color color) {
  switch (color) {
    case Color::strong: return "\033[1m";
    case Color::faint: return "\033[2m";
    case Color::good: return "\033[32m";
    case Color::caution: return "\033[33m";
    case Color::bad: return "\033[31m";
    case Color::none: return "";
  }
  return "";
}

std::string painted(std::string_view text, Color color, bool enabled) {
  if (!enabled || color == Color::none || text.empty()) return std::string(text);
  return fmt::format("{}{}\033[0m", code_of(color), text);
}

std::string cell_text(std::string_view text, bool is_last) {
  std::string result;
  for (const char c : printable(text)) {
    if (c == '\t' || (c == '\n' && !is_last)) {
      result += c == '\t' ? "\\t" : "\\n";
    } else {
      result += c;
    }
  }
  return result;
}

std::size_t display_width(std::string_view text) {
  return static_cast<std::size_t>(
      std::count_if(text.begin(), text.end(), [](char c) { return !is_utf8_continuation(c); }));
}

std::vector<std::string> wrap(std::string_view text, std::size_t width) {
  std::vector<std::string> lines(1);
  while (!text.empty()) {
    const std::string_view word = text.substr(0, text.find_first_of(" \n"));
    const bool ends_line = text.size() > word.size() && text[word.size()] == '\n';
    text = text.substr(std::min(text.size(), word.size() + 1));
    std::string& line = lines.back();
    if (line.empty()) {
      line = word;
    } else if (display_width(line) + 1 + display_width(word) <= width) {
      line += ' ';
      line += word;
    } else {
      lines.emplace_back(word);
    }
    if (ends_line) lines.emplace_back();
  }
  return lines;
}

std::string shortened(const std::string& text, std::size_t most) {
  if (display_width(text) <= most) return text;
  std::size_t begin = text.size();
  for (std::size_t characters = 0; begin > 0 && characters < most - 1;) {
    --begin;
    characters += is_utf8_continuation(text[begin]) ? 0 : 1;
  }
  return "…" + text.substr(begin);
}

std::string count_text(std::size_t count, std::string_view singular, std::string_view plural) {
  if (count == 1) return fmt::format("1 {}", singular);
  return plural.empty() ? fmt::format("{} {}s", count, singular) : fmt::format("{} {}", count, plural);
}

std::string Table::text(bool color, std::size_t width) const {
  std::vector<std::vector<Cell>> rows = rows_;
  std::vector<std::size_t> widths;
  for (std::vector<Cell>& row : rows) {
    widths.resize(std::max(widths.size(), row.size()), 0);
    for (std::size_t i = 0; i < row.size(); ++i) {
      const bool is_last = i + 1 == row.size();
      row[i].text = cell_text(row[i].text, is_last);
      if (!is_last) widths[i] = std::max(widths[i], display_width(row[i].text));
    }
  }
  std::string result;
  for (const std::vector<Cell>& row : rows) {
    std::string line(indent_, ' ');
    std::size_t column = indent_;
    for (std::size_t i = 0; i + 1 < row.size(); ++i) {
      line += painted(row[i].text, row[i].color, color);
      line.append(widths[i] - display_width(row[i].text) + 2, ' ');
      column += widths[i] + 2;
    }
    if (!row.empty()) {
      const std::size_t room = width > column + 30 ? width - column : 30;
      bool first = true;
      for (const std::string& part : wrap(row.back().text, room)) {
        if (!first) line += "\n" + std::string(column, ' ');
        line += painted(part, row.back().color, color);
        first = false;
      }
    }
    while (!line.empty() && line.back() == ' ') line.pop_back();
    result += line + "\n";
  }
  return result;
}

}  // namespace graft::present

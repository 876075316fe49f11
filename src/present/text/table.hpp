// Text for people: tables, colors, widths.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace graft::present {

enum class Color : std::uint8_t { none, strong, faint, good, caution, bad };

struct Cell {
  std::string text;
  Color color = Color::none;
  // NOLINTNEXTLINE(google-explicit-constructor): a row of a table is a list of texts
  Cell(std::string t = {}, Color c = Color::none) : text(std::move(t)), color(c) {}
  Cell(const char* t) : text(t) {}  // NOLINT(google-explicit-constructor)
};

/// Rows of cells; columns are as wide as their widest cell, and the last one wraps at the width of the terminal.
class Table {
 public:
  explicit Table(std::size_t indent = 2) : indent_(indent) {}
  void add(std::vector<Cell> row) { rows_.push_back(std::move(row)); }
  void append(const Table& other) { rows_.insert(rows_.end(), other.rows_.begin(), other.rows_.end()); }
  [[nodiscard]] bool empty() const { return rows_.empty(); }
  [[nodiscard]] std::string text(bool color, std::size_t width) const;

 private:
  std::size_t indent_;
  std::vector<std::vector<Cell>> rows_;
};

/// Columns that a text takes on a terminal: code points of UTF-8.
[[nodiscard]] std::size_t display_width(std::string_view text);
/// Breaks at ends of lines, and at spaces so that no line is wider, unless a single word is.
[[nodiscard]] std::vector<std::string> wrap(std::string_view text, std::size_t width);
/// The end of a text that is longer than `most` characters: of a long name it says more than the beginning.
[[nodiscard]] std::string shortened(const std::string& text, std::size_t most);
/// "712.7 kB".
[[nodiscard]] std::string bytes_text(std::uint64_t bytes);
/// "1 node", "3 nodes".
[[nodiscard]] std::string count_text(std::size_t count, std::string_view singular, std::string_view plural = {});

/// What makes a terminal show a color; nothing for none.
[[nodiscard]] std::string_view code_of(Color color);
/// The text in this color, where `enabled`.
[[nodiscard]] std::string painted(std::string_view text, Color color, bool enabled);
/// A text as a cell shows it; it has one line, unless it is the last of its row.
[[nodiscard]] std::string cell_text(std::string_view text, bool is_last);

}  // namespace graft::present

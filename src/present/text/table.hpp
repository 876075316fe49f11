// Formats text for terminals: tables, colors, widths.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/bytes_text.hpp"

namespace graft::present {

using graft::bytes_text;

enum class Color : std::uint8_t { none, strong, faint, good, caution, bad };

struct Cell {
  std::string text;
  Color color = Color::none;
  // NOLINTNEXTLINE(google-explicit-constructor): a row of a table is a list of strings
  Cell(std::string t = {}, Color c = Color::none) : text(std::move(t)), color(c) {}
  Cell(const char* t) : text(t) {}  // NOLINT(google-explicit-constructor)
};

/// Rows of cells. Columns are as wide as their widest cell, and the last cell of a row is wrapped at the width of the
/// terminal.
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

/// Returns the number of terminal columns that a text occupies, counted as its code points.
[[nodiscard]] std::size_t display_width(std::string_view text);
/// Breaks a text at newlines, and at spaces so that no line is wider than `width`, unless a single word is wider.
[[nodiscard]] std::vector<std::string> wrap(std::string_view text, std::size_t width);
/// Returns a text of at most `most` characters. A longer text loses its beginning, because the end of a long name is
/// more specific.
[[nodiscard]] std::string shortened(const std::string& text, std::size_t most);
/// Returns a count with its noun: "1 node", "3 nodes". Without `plural`, the plural is the singular followed by "s".
[[nodiscard]] std::string count_text(std::size_t count, std::string_view singular, std::string_view plural = {});

/// Returns the escape sequence that starts a color; empty for Color::none.
[[nodiscard]] std::string_view code_of(Color color);
/// Returns the text in this color if `enabled`, otherwise the text alone.
[[nodiscard]] std::string painted(std::string_view text, Color color, bool enabled);
/// Returns the printable text of a cell. Tabs are escaped, and so are newlines except in the last cell of a row.
[[nodiscard]] std::string cell_text(std::string_view text, bool is_last);

}  // namespace graft::present

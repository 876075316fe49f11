// What a command prints: text and tables for people, JSON for programs, messages on standard error.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

namespace graft::cli {

/// Keeps keys in the order in which they were written.
using Json = nlohmann::ordered_json;

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

class Console {
 public:
  Console();

  bool json = false;     ///< --json
  bool quiet = false;    ///< -q: errors only, and what was asked for
  bool verbose = false;  ///< -v

  /// A listing that the command was asked for; nothing with --json.
  void print(std::string_view line = {}) const;
  void print(const Table& table) const;
  /// What was done; nothing with --json or -q.
  void say(std::string_view line = {}) const;
  void say(const Table& table) const;
  /// The one JSON object of a command; nothing without --json.
  void result(const Json& object) const;

  void warn(std::string_view message) const;    ///< Standard error; nothing with -q.
  void detail(std::string_view message) const;  ///< Standard error; only with -v.
  /// "error: ..." on standard error; further lines of the message are indented.
  void error(std::string_view message) const;

  [[nodiscard]] std::string paint(std::string_view text, Color color) const;  ///< For standard output.
  /// Throws Error if standard output could not be written, a full disk for example.
  void finish() const;

 private:
  bool color_out_;
  bool color_error_;
  std::size_t width_;
};

/// Progress of long work on standard error: a bar on a terminal, now and then a line elsewhere, nothing with -q.
class Progress {
 public:
  explicit Progress(const Console& console);
  ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;
  /// `fraction` is 0 to 1.
  void update(std::string_view what, double fraction);
  /// Takes the bar away, so that something else can be written.
  void clear();

 private:
  bool enabled_;
  bool terminal_;
  bool drawn_ = false;
  double started_;
  double last_;
};

}  // namespace graft::cli

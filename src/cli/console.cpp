// Tables, color, JSON and progress.
#include "cli/console.hpp"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <random>
#include <system_error>

#include "cli/printable.hpp"
#include "core/utf8.hpp"
#include "graft/error.hpp"

namespace graft::cli {
namespace {

bool wants_color(int descriptor) {
  const char* no_color = std::getenv("NO_COLOR");
  const char* terminal = std::getenv("TERM");
  if (no_color != nullptr && *no_color != '\0') return false;
  if (terminal != nullptr && std::string_view(terminal) == "dumb") return false;
  return ::isatty(descriptor) == 1;
}

std::size_t terminal_width(int descriptor) {
  constexpr std::size_t elsewhere = 120;
  constexpr std::size_t widest = 140;
  constexpr std::size_t narrowest = 60;
  ::winsize size{};
  if (::ioctl(descriptor, TIOCGWINSZ, &size) != 0 || size.ws_col == 0) return elsewhere;
  return std::clamp<std::size_t>(size.ws_col, narrowest, widest);
}

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

/// Begins what Console::paint puts into a line, which is followed by the number of a color. Nobody can guess it, so
/// that a name in the line cannot hold it.
const std::string& color_mark() {
  static const std::string mark = [] {
    std::random_device random;
    return fmt::format("\033{:08x}{:08x}{:08x}", random(), random(), random());
  }();
  return mark;
}

/// A line as it is shown: safe, with colors for Console::paint's marks. Its further lines are indented, so that
/// nothing in it can pass for a line of its own.
std::string line_text(std::string_view line) {
  const std::string& mark = color_mark();
  std::string result;
  while (!line.empty()) {
    const std::size_t end = std::min(line.find(mark), line.size());
    for (const char c : printable(line.substr(0, end))) {
      if (!result.empty() && result.back() == '\n' && c != ' ' && c != '\n') result += "  ";
      result += c;
    }
    line.remove_prefix(end);
    if (line.size() <= mark.size()) break;
    const auto color = static_cast<Color>(line[mark.size()] - '0');
    result += color == Color::none ? "\033[0m" : code_of(color);
    line.remove_prefix(mark.size() + 1);
  }
  return result;
}

/// A cell as it is shown; it has one line, unless it is the last of its row.
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

void write_to(std::FILE* stream, std::string_view text) { (void)std::fwrite(text.data(), 1, text.size(), stream); }

double seconds_now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

}  // namespace

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

std::string bytes_text(std::uint64_t bytes) {
  constexpr std::array units{"kB", "MB", "GB", "TB"};
  if (bytes < 1000) return fmt::format("{} bytes", bytes);
  double value = static_cast<double>(bytes) / 1000;
  std::size_t unit = 0;
  for (; value >= 999.95 && unit + 1 < units.size(); ++unit) value /= 1000;
  return fmt::format("{:.1f} {}", value, units[unit]);
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

Console::Console()
    : color_out_(wants_color(STDOUT_FILENO)),
      color_error_(wants_color(STDERR_FILENO)),
      width_(terminal_width(STDOUT_FILENO)) {}

void Console::print(std::string_view line) const {
  if (json) return;
  write_to(stdout, line_text(line) + "\n");
}

void Console::print(const Table& table) const {
  if (!json) write_to(stdout, table.text(color_out_, width_));
}

void Console::say(std::string_view line) const {
  if (!quiet) print(line);
}

void Console::say(const Table& table) const {
  if (!quiet) print(table);
}

void Console::result(const Json& object) const {
  // Names in models are bytes; whatever is no UTF-8 is replaced rather than refused.
  if (json) write_to(stdout, printable(object.dump(2, ' ', false, Json::error_handler_t::replace)) + "\n");
}

void Console::warn(std::string_view message) const {
  (void)std::fflush(stdout);  // or a log of both has the warning in the middle of an earlier line
  if (!quiet)
    write_to(stderr, fmt::format("{} {}\n", painted("warning:", Color::caution, color_error_), line_text(message)));
}

void Console::detail(std::string_view message) const {
  if (verbose) write_to(stderr, painted(line_text(message), Color::faint, color_error_) + "\n");
}

void Console::error(std::string_view message) const {
  std::string text = painted("error:", Color::bad, color_error_) + " ";
  for (const char c : printable(message)) {
    text += c;
    if (c == '\n') text += "  ";
  }
  write_to(stderr, text + "\n");
}

std::string Console::paint(std::string_view text, Color color) const {
  if (!color_out_ || color == Color::none || text.empty()) return std::string(text);
  const std::string& mark = color_mark();
  return fmt::format("{}{}{}{}{}", mark, static_cast<int>(color), text, mark, static_cast<int>(Color::none));
}

void Console::finish() const {
  if (std::fflush(stdout) != 0 || std::ferror(stdout) != 0) {
    throw Error(fmt::format("standard output: cannot be written: {}", std::generic_category().message(errno)));
  }
}

Progress::Progress(const Console& console)
    : enabled_(!console.quiet), terminal_(::isatty(STDERR_FILENO) == 1), started_(seconds_now()), last_(started_) {}

Progress::~Progress() { clear(); }

void Progress::update(std::string_view what, double fraction) {
  constexpr double first_bar = 0.3;  // shorter work shows none
  constexpr double between_bars = 0.05;
  constexpr double between_lines = 5;
  constexpr int cells = 24;
  const double now = seconds_now();
  const double percent = std::clamp(fraction, 0.0, 1.0) * 100;
  if (!enabled_) return;
  if (!terminal_) {
    if (now - last_ < between_lines) return;
    last_ = now;
    write_to(stderr, fmt::format("{:3.0f} %  {}\n", percent, cell_text(what, false)));
    return;
  }
  if (now - started_ < first_bar || (drawn_ && now - last_ < between_bars)) return;
  last_ = now;
  drawn_ = true;
  std::string bar;
  for (int i = 0; i < cells; ++i) bar += i * 100 < percent * cells ? "━" : "─";
  const std::size_t room = terminal_width(STDERR_FILENO) - cells - 10;
  write_to(stderr, fmt::format("\r\033[K{} {:3.0f} %  {}", bar, percent, cell_text(what.substr(0, room), false)));
  (void)std::fflush(stderr);
}

void Progress::clear() {
  if (drawn_) write_to(stderr, "\r\033[K");
  drawn_ = false;
}

}  // namespace graft::cli

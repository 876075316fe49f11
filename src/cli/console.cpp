// Writes to standard output and standard error, and draws progress bars.
#include "cli/console.hpp"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <random>
#include <system_error>
#include <variant>

#include "graft/error.hpp"
#include "present/text/printable.hpp"

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

/// Returns the mark that Console::paint inserts into a line, followed by the number of a color. The mark is random, so
/// that a name in the line cannot contain it.
const std::string& color_mark() {
  static const std::string mark = [] {
    std::random_device random;
    return fmt::format("\033{:08x}{:08x}{:08x}", random(), random(), random());
  }();
  return mark;
}

/// Returns a line for the terminal: printable, with colors in place of Console::paint's marks. Lines after a newline
/// are indented, so that a name that contains a newline cannot imitate a message.
std::string line_text(std::string_view line) {
  const std::string& mark = color_mark();
  std::string result;
  while (!line.empty()) {
    const std::size_t end = std::min(line.find(mark), line.size());
    for (const char c : present::printable(line.substr(0, end))) {
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

void write_to(std::FILE* stream, std::string_view text) { (void)std::fwrite(text.data(), 1, text.size(), stream); }

double seconds_now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

}  // namespace

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

void Console::print(const present::Listing& listing) const {
  for (const auto& block : listing.blocks()) {
    if (const auto* table = std::get_if<Table>(&block)) {
      print(*table);
      continue;
    }
    std::string line;
    for (const Cell& part : std::get<present::Listing::Line>(block)) line += paint(part.text, part.color);
    print(line);
  }
}

void Console::say(std::string_view line) const {
  if (!quiet) print(line);
}

void Console::say(const Table& table) const {
  if (!quiet) print(table);
}

void Console::say(const present::Listing& listing) const {
  if (!quiet) print(listing);
}

void Console::result(const Json& object) const {
  // Names in models can contain any bytes; invalid UTF-8 is replaced instead of refused.
  if (json) write_to(stdout, present::printable(object.dump(2, ' ', false, Json::error_handler_t::replace)) + "\n");
}

void Console::warn(std::string_view message) const {
  (void)std::fflush(stdout);  // otherwise a log of both streams has the warning inside an earlier line
  if (!quiet)
    write_to(stderr, fmt::format("{} {}\n", painted("warning:", Color::caution, color_error_), line_text(message)));
}

void Console::note(std::string_view message) const {
  (void)std::fflush(stdout);
  if (!quiet)
    write_to(stderr, fmt::format("{} {}\n", painted("note:", Color::strong, color_error_), line_text(message)));
}

void Console::detail(std::string_view message) const {
  if (verbose) write_to(stderr, painted(line_text(message), Color::faint, color_error_) + "\n");
}

void Console::error(std::string_view message) const {
  std::string text = painted("error:", Color::bad, color_error_) + " ";
  for (const char c : present::printable(message)) {
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
  constexpr double first_bar = 0.3;  // shorter work shows no bar
  constexpr double between_bars = 0.05;
  constexpr double between_lines = 5;
  constexpr int cells = 24;
  const double now = seconds_now();
  const double percent = std::clamp(fraction, 0.0, 1.0) * 100;
  if (!enabled_) return;
  if (!terminal_) {
    if (now - last_ < between_lines) return;
    last_ = now;
    write_to(stderr, fmt::format("{:3.0f} %  {}\n", percent, present::cell_text(what, false)));
    return;
  }
  if (now - started_ < first_bar || (drawn_ && now - last_ < between_bars)) return;
  last_ = now;
  drawn_ = true;
  std::string bar;
  for (int i = 0; i < cells; ++i) bar += i * 100 < percent * cells ? "━" : "─";
  const std::size_t room = terminal_width(STDERR_FILENO) - cells - 10;
  write_to(stderr,
           fmt::format("\r\033[K{} {:3.0f} %  {}", bar, percent, present::cell_text(what.substr(0, room), false)));
  (void)std::fflush(stderr);
}

void Progress::clear() {
  if (drawn_) write_to(stderr, "\r\033[K");
  drawn_ = false;
}

}  // namespace graft::cli

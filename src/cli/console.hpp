// The output of commands: text and tables for people, JSON for programs, messages on standard error.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "present/json/values.hpp"
#include "present/text/listing.hpp"
#include "present/text/table.hpp"

namespace graft::cli {

using present::bytes_text;
using present::Cell;
using present::Color;
using present::count_text;
using present::display_width;
using present::Json;
using present::shortened;
using present::Table;
using present::wrap;

class Console {
 public:
  Console();

  bool json = false;         ///< Whether the command has --json and prints JSON only.
  bool quiet = false;        ///< Whether the command has -q and prints only errors and requested listings.
  bool verbose = false;      ///< Whether the command has -v and prints details too.
  std::string command_line;  ///< The command line of the program, with quotes where a shell needs them.

  /// Prints a listing that the user requested; nothing with --json.
  void print(std::string_view line = {}) const;
  void print(const Table& table) const;
  void print(const present::Listing& listing) const;
  /// Prints a report of the work; nothing with --json or -q.
  void say(std::string_view line = {}) const;
  void say(const Table& table) const;
  void say(const present::Listing& listing) const;
  /// Prints the JSON object of the command; does nothing without --json. A command calls it once.
  void result(const Json& object) const;

  void note(std::string_view message) const;    ///< Prints "note: ..." to standard error; nothing with -q.
  void warn(std::string_view message) const;    ///< Prints the message to standard error; nothing with -q.
  void detail(std::string_view message) const;  ///< Prints the message to standard error, only with -v.
  /// Prints "error: ..." to standard error, with further lines of the message indented.
  void error(std::string_view message) const;

  /// Returns `text` with marks from which `print` or `say` creates the color of a line. Returns the text unchanged if
  /// standard output shows no colors.
  [[nodiscard]] std::string paint(std::string_view text, Color color) const;
  /// Throws Error if standard output could not be written, for example because a disk is full.
  void finish() const;

 private:
  bool color_out_;
  bool color_error_;
  std::size_t width_;
};

/// Shows the progress of long work on standard error: a bar on a terminal, a line every 5 seconds elsewhere, nothing
/// with -q.
class Progress {
 public:
  explicit Progress(const Console& console);
  ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;
  /// Shows the progress: `what` describes the current step, and `fraction` is the completed part of the work, from 0 to
  /// 1.
  void update(std::string_view what, double fraction);
  /// Removes the bar, so that other output can be written.
  void clear();

 private:
  bool enabled_;
  bool terminal_;
  bool drawn_ = false;
  double started_;
  double last_;
};

}  // namespace graft::cli

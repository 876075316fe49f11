// Where a command prints: text and tables for people, JSON for programs, messages on standard error.
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

  bool json = false;     ///< --json
  bool quiet = false;    ///< -q: errors only, and what was asked for
  bool verbose = false;  ///< -v

  /// A listing that the command was asked for; nothing with --json.
  void print(std::string_view line = {}) const;
  void print(const Table& table) const;
  void print(const present::Listing& listing) const;
  /// What was done; nothing with --json or -q.
  void say(std::string_view line = {}) const;
  void say(const Table& table) const;
  void say(const present::Listing& listing) const;
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

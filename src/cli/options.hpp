// Options and arguments of commands. CLI11 is a header-only library that adds seconds to the compilation of every
// source that includes it. Therefore the commands declare their options with these classes, and options.cpp passes them
// to CLI11.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace CLI {  // NOLINT(readability-identifier-naming)
class App;
class Option;
}  // namespace CLI

namespace graft::cli {

/// A check of the string that a user gives as a value.
struct Check {
  std::vector<std::string> words = {};  ///< The allowed words; if empty, `fault` decides.
  /// Returns what is wrong with a value; an empty string if the value is allowed.
  std::function<std::string(const std::string& text)> fault = {};
  std::string type = {};     ///< The name of the value in help.
  std::string allowed = {};  ///< The allowed values as a set in braces, for completions.
};

[[nodiscard]] inline Check one_of(std::vector<std::string> words) { return {.words = std::move(words)}; }

/// Returns a check for finite numbers for which `is_good` returns true. `allowed` describes these numbers in messages:
/// "an integer of at least 1".
[[nodiscard]] Check number(std::function<bool(double)> is_good, std::string allowed);
[[nodiscard]] Check at_least(double lowest, const std::string& allowed);
[[nodiscard]] Check positive();
[[nodiscard]] Check between(double lowest, double highest);
/// Returns a check for integers from `lowest` to `highest`.
[[nodiscard]] Check range(int lowest, int highest);

/// An option of a command. The command owns the object. Every function except `count` and `get_name` returns the option
/// itself.
class Option {
 public:
  explicit Option(CLI::Option& option) : option_(option) {}

  Option* required();
  Option* type_name(const std::string& type);
  Option* option_text(const std::string& text);  ///< Replaces the name and the type in help.
  Option* group(const std::string& group);
  Option* check(const Check& check);
  Option* delimiter(char delimiter);
  Option* expected(int count);
  Option* expected(int least, int most);
  Option* excludes(const Option* other);
  Option* needs(const Option* other);

  /// Returns how often the user gave the option.
  [[nodiscard]] std::size_t count() const;
  [[nodiscard]] std::string get_name() const;

 private:
  CLI::Option& option_;
};

/// A command with its arguments, whose names are in capitals, and its options. Parsing stores each value in the
/// variable that was passed to add_option, which must live as long as the program.
class Command {
 public:
  explicit Command(CLI::App& app) : app_(app) {}

  Option* add_option(const std::string& name, std::string& value, const std::string& description);
  Option* add_option(const std::string& name, std::vector<std::string>& values, const std::string& description);
  Option* add_option(const std::string& name, std::filesystem::path& value, const std::string& description);
  Option* add_option(const std::string& name, int& value, const std::string& description);
  Option* add_option(const std::string& name, std::int64_t& value, const std::string& description);
  Option* add_option(const std::string& name, std::uint32_t& value, const std::string& description);
  Option* add_option(const std::string& name, std::optional<std::uint32_t>& value, const std::string& description);
  Option* add_option(const std::string& name, std::optional<std::int64_t>& value, const std::string& description);
  Option* add_option(const std::string& name, std::optional<double>& value, const std::string& description);
  Option* add_option(const std::string& name, std::optional<std::string>& value, const std::string& description);
  Option* add_option(const std::string& name, std::size_t& value, const std::string& description);
  Option* add_option(const std::string& name, double& value, const std::string& description);
  Option* add_flag(const std::string& name, bool& value, const std::string& description);

 private:
  Option* keep(CLI::Option* option);

  CLI::App& app_;
  std::deque<Option> options_;
};

}  // namespace graft::cli

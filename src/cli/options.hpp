// Options and arguments of commands. CLI11 is in headers alone and takes seconds of every source that reads it, so that
// the commands say here what they have, and options.cpp tells CLI11.
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

/// What the text of a value has to be.
struct Check {
  std::vector<std::string> words = {};                             ///< One of these; empty: `fault` decides.
  std::function<std::string(const std::string& text)> fault = {};  ///< Says what is wrong; empty where nothing is.
  std::string type = {};                                           ///< What help calls the value.
  std::string allowed = {};                                        ///< A set in braces, for completions.
};

[[nodiscard]] inline Check one_of(std::vector<std::string> words) { return {.words = std::move(words)}; }

/// A finite number that `is_good`; `allowed` says which are: "an integer from 1".
[[nodiscard]] Check number(std::function<bool(double)> is_good, std::string allowed);
[[nodiscard]] Check at_least(double lowest, const std::string& allowed);
[[nodiscard]] Check positive();
[[nodiscard]] Check between(double lowest, double highest);
/// An integer.
[[nodiscard]] Check range(int lowest, int highest);

/// Of a command, which keeps it. Every function but `count` and `get_name` returns the option itself.
class Option {
 public:
  explicit Option(CLI::Option& option) : option_(option) {}

  Option* required();
  Option* type_name(const std::string& type);
  Option* option_text(const std::string& text);  ///< In place of the name and the type, in help.
  Option* group(const std::string& group);
  Option* check(const Check& check);
  Option* delimiter(char delimiter);
  Option* expected(int count);
  Option* expected(int least, int most);
  Option* excludes(const Option* other);
  Option* needs(const Option* other);

  /// How often it was given.
  [[nodiscard]] std::size_t count() const;
  [[nodiscard]] std::string get_name() const;

 private:
  CLI::Option& option_;
};

/// A command's arguments, as names in capitals, and options. Values go where `value` refers to, which lives as long as
/// the program.
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
  Option* add_option(const std::string& name, std::size_t& value, const std::string& description);
  Option* add_option(const std::string& name, double& value, const std::string& description);
  Option* add_flag(const std::string& name, bool& value, const std::string& description);

 private:
  Option* keep(CLI::Option* option);

  CLI::App& app_;
  std::deque<Option> options_;
};

}  // namespace graft::cli

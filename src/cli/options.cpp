// Passes the options to CLI11.
#include "cli/options.hpp"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cmath>
#include <utility>

namespace graft::cli {

// Replaces CLI11's checks of numbers, whose messages contain the largest number of the type.
Check number(std::function<bool(double)> is_good, std::string allowed) {
  return {.fault =
              [is_good = std::move(is_good), allowed = std::move(allowed)](const std::string& text) {
                double value = 0;
                const bool good = CLI::detail::lexical_cast(text, value) && std::isfinite(value) && is_good(value);
                return good ? std::string() : fmt::format("found {}; the value must be {}", text, allowed);
              },
          .type = "number"};
}

Check at_least(double lowest, const std::string& allowed) {
  return number([lowest](double value) { return value >= lowest; }, allowed);
}

Check positive() {
  return number([](double value) { return value > 0; }, "a number above 0");
}

Check between(double lowest, double highest) {
  return number([=](double value) { return value >= lowest && value <= highest; },
                fmt::format("a number from {} to {}", lowest, highest));
}

Check range(int lowest, int highest) {
  return {.fault = [range = CLI::Range(lowest, highest)](const std::string& text) {
    std::string value = text;
    return range(value);
  }};
}

Option* Option::required() {
  option_.required();
  return this;
}

Option* Option::type_name(const std::string& type) {
  option_.type_name(type);
  return this;
}

Option* Option::option_text(const std::string& text) {
  option_.option_text(text);
  return this;
}

Option* Option::group(const std::string& group) {
  option_.group(group);
  return this;
}

Option* Option::check(const Check& check) {
  if (check.words.empty()) {
    option_.check(CLI::Validator(check.fault, check.allowed, check.type));
  } else {
    option_.check(CLI::IsMember(check.words));
  }
  return this;
}

Option* Option::delimiter(char delimiter) {
  option_.delimiter(delimiter);
  return this;
}

Option* Option::expected(int count) {
  option_.expected(count);
  return this;
}

Option* Option::expected(int least, int most) {
  option_.expected(least, most);
  return this;
}

Option* Option::excludes(const Option* other) {
  option_.excludes(&other->option_);
  return this;
}

Option* Option::needs(const Option* other) {
  option_.needs(&other->option_);
  return this;
}

std::size_t Option::count() const { return option_.count(); }
std::string Option::get_name() const { return option_.get_name(); }

Option* Command::keep(CLI::Option* option) { return &options_.emplace_back(*option); }

Option* Command::add_option(const std::string& name, std::string& value, const std::string& description) {
  return keep(app_.add_option(name, value, description));
}
Option* Command::add_option(const std::string& name, std::vector<std::string>& values, const std::string& description) {
  return keep(app_.add_option(name, values, description));
}
Option* Command::add_option(const std::string& name, std::filesystem::path& value, const std::string& description) {
  return keep(app_.add_option(name, value, description));
}
Option* Command::add_option(const std::string& name, int& value, const std::string& description) {
  return keep(app_.add_option(name, value, description));
}
Option* Command::add_option(const std::string& name, std::int64_t& value, const std::string& description) {
  return keep(app_.add_option(name, value, description));
}
Option* Command::add_option(const std::string& name, std::uint32_t& value, const std::string& description) {
  return keep(app_.add_option(name, value, description));
}
Option* Command::add_option(const std::string& name, std::optional<std::uint32_t>& value,
                            const std::string& description) {
  return keep(app_.add_option(name, value, description));
}
Option* Command::add_option(const std::string& name, std::optional<std::int64_t>& value,
                            const std::string& description) {
  return keep(app_.add_option(name, value, description));
}
Option* Command::add_option(const std::string& name, std::optional<double>& value, const std::string& description) {
  return keep(app_.add_option(name, value, description));
}
Option* Command::add_option(const std::string& name, std::optional<std::string>& value,
                            const std::string& description) {
  return keep(app_.add_option(name, value, description));
}
Option* Command::add_option(const std::string& name, std::size_t& value, const std::string& description) {
  return keep(app_.add_option(name, value, description));
}
Option* Command::add_option(const std::string& name, double& value, const std::string& description) {
  return keep(app_.add_option(name, value, description));
}
Option* Command::add_flag(const std::string& name, bool& value, const std::string& description) {
  return keep(app_.add_flag(name, value, description));
}

}  // namespace graft::cli

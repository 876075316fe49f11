// Checks of options that are numbers. CLI11's own print the largest number that a type holds.
#pragma once

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cmath>
#include <functional>
#include <string>
#include <utility>

namespace graft::cli {

/// A finite number that `is_good`; `allowed` says which are: "an integer from 1".
[[nodiscard]] inline CLI::Validator number(std::function<bool(double)> is_good, std::string allowed) {
  return {[is_good = std::move(is_good), allowed = std::move(allowed)](const std::string& text) {
            double value = 0;
            const bool good = CLI::detail::lexical_cast(text, value) && std::isfinite(value) && is_good(value);
            return good ? std::string() : fmt::format("found {}, allowed is {}", text, allowed);
          },
          "", "number"};
}

[[nodiscard]] inline CLI::Validator at_least(double lowest, const std::string& allowed) {
  return number([lowest](double value) { return value >= lowest; }, allowed);
}

[[nodiscard]] inline CLI::Validator positive() {
  return number([](double value) { return value > 0; }, "a number above 0");
}

[[nodiscard]] inline CLI::Validator between(double lowest, double highest) {
  return number([=](double value) { return value >= lowest && value <= highest; },
                fmt::format("{} to {}", lowest, highest));
}

}  // namespace graft::cli

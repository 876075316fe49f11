// Checks of options that are numbers. CLI11's own print the largest number that a type holds.
#pragma once

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cmath>
#include <string>

namespace graft::cli {

/// A finite number that is not below `lowest`; `allowed` says so: "an integer from 1".
[[nodiscard]] inline CLI::Validator at_least(double lowest, const std::string& allowed) {
  return {[lowest, allowed](const std::string& text) {
            double value = 0;
            const bool good = CLI::detail::lexical_cast(text, value) && std::isfinite(value) && value >= lowest;
            return good ? std::string() : fmt::format("found {}, allowed is {}", text, allowed);
          },
          "", "at least"};
}

/// A finite number above 0.
[[nodiscard]] inline CLI::Validator positive() {
  return {[](const std::string& text) {
            double value = 0;
            const bool good = CLI::detail::lexical_cast(text, value) && std::isfinite(value) && value > 0;
            return good ? std::string() : fmt::format("found {}, allowed is a number above 0", text);
          },
          "", "positive"};
}

/// A number from `lowest` to `highest`.
[[nodiscard]] inline CLI::Validator between(double lowest, double highest) {
  return {[lowest, highest](const std::string& text) {
            double value = 0;
            const bool good = CLI::detail::lexical_cast(text, value) && value >= lowest && value <= highest;
            return good ? std::string() : fmt::format("found {}, allowed is {} to {}", text, lowest, highest);
          },
          "", "between"};
}

}  // namespace graft::cli

// Checks of numeric options. An application sets them directly, so that no parser has checked them.
#pragma once

#include <fmt/format.h>

#include <cmath>
#include <optional>
#include <string_view>

#include "graft/error.hpp"

namespace graft::toolkit {

/// Throws Error if `is_good` is false. With the option "VerifyOptions::relative", -1 for `found`, and "a number of at
/// least 0" for `allowed`, the message is "VerifyOptions::relative: found -1; the value must be a number of at least
/// 0".
inline void check_number(bool is_good, std::string_view option, double found, std::string_view allowed) {
  if (!is_good) throw Error(fmt::format("{}: found {}; the value must be {}", option, found, allowed));
}

inline void check_finite(std::string_view option, std::optional<double> value) {
  if (value) check_number(std::isfinite(*value), option, *value, "a finite number");
}

inline void check_from_0(std::string_view option, std::optional<double> value) {
  if (value) check_number(std::isfinite(*value) && *value >= 0, option, *value, "a number of at least 0");
}

inline void check_positive(std::string_view option, std::optional<double> value) {
  if (value) check_number(std::isfinite(*value) && *value > 0, option, *value, "a number above 0");
}

}  // namespace graft::toolkit

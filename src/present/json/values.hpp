// What the results of commands have in common, as JSON.
#pragma once

#include <fmt/format.h>

#include <cmath>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

namespace graft::present {

/// Keeps keys in the order in which they were written.
using Json = nlohmann::ordered_json;

/// Numbers that JSON does not have are the texts "inf", "-inf" and "nan".
[[nodiscard]] inline Json number(double value) {
  if (std::isnan(value)) return "nan";
  return std::isfinite(value) ? Json(value) : Json(fmt::format("{}", value));
}
[[nodiscard]] inline Json number(const std::optional<double>& value) { return value ? number(*value) : Json(); }

}  // namespace graft::present

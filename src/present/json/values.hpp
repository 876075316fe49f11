// Functions that the JSON results of all commands share.
#pragma once

#include <fmt/format.h>

#include <cmath>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

namespace graft::present {

/// JSON that keeps keys in the order in which they were inserted.
using Json = nlohmann::ordered_json;

/// Returns a JSON number, or the string "inf", "-inf" or "nan" for a number that JSON cannot represent.
[[nodiscard]] inline Json number(double value) {
  if (std::isnan(value)) return "nan";
  return std::isfinite(value) ? Json(value) : Json(fmt::format("{}", value));
}
[[nodiscard]] inline Json number(const std::optional<double>& value) { return value ? number(*value) : Json(); }

/// Returns the path of the file with a model's external weights, or null.
[[nodiscard]] inline Json json_of_data_file(const std::optional<std::filesystem::path>& file) {
  return file ? Json(file->string()) : Json();
}

}  // namespace graft::present

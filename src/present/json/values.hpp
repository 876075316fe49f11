// What the results of commands have in common, as JSON.
#pragma once

#include <fmt/format.h>

#include <cmath>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace graft::present {

/// Keeps keys in the order in which they were written.
using Json = nlohmann::ordered_json;

/// Numbers that JSON does not have are the texts "inf", "-inf" and "nan".
[[nodiscard]] inline Json number(double value) {
  if (std::isnan(value)) return "nan";
  return std::isfinite(value) ? Json(value) : Json(fmt::format("{}", value));
}
[[nodiscard]] inline Json number(const std::optional<double>& value) { return value ? number(*value) : Json(); }

/// Returns the file beside an ONNX file that has its weights, or null.
[[nodiscard]] inline Json json_of_data_file(const std::optional<std::filesystem::path>& file) {
  return file ? Json(file->string()) : Json();
}

/// The name in what `describe` says of a node: node 'conv1' (Conv). A node of which nothing is said has none.
[[nodiscard]] inline std::string name_in(std::string_view description) {
  const std::size_t begin = description.find('\'') + 1;
  const std::size_t end = description.rfind("' (");
  if (begin == 0 || end == std::string_view::npos || end < begin) return std::string(description);
  return std::string(description.substr(begin, end - begin));
}

[[nodiscard]] inline std::vector<std::string> names_in(const std::vector<std::string>& descriptions) {
  std::vector<std::string> names;
  for (const std::string& description : descriptions) names.push_back(name_in(description));
  return names;
}

}  // namespace graft::present

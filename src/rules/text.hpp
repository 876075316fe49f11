// Functions that the readers of rules share: numbers in strings, and lists of names in messages.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace graft::rules {

/// Returns the number that `text` represents, or nothing if it is not a decimal integer of at most 64 bits.
[[nodiscard]] std::optional<std::int64_t> to_integer(const std::string& text);
/// Returns the number that `text` represents, or nothing if it is not a decimal number. ".inf" and "inf" are infinity,
/// as in YAML.
[[nodiscard]] std::optional<double> to_number(const std::string& text);
/// Returns the names separated by commas, "a, b, c", or "none" if the list is empty.
[[nodiscard]] std::string joined(const std::vector<std::string>& names);

}  // namespace graft::rules

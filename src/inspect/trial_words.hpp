// What TensorRT's answers say, as strings.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "inspect/trials.hpp"

namespace graft::inspect {

/// Returns whether the builder says that the sizes of the profile contradict each other.
[[nodiscard]] bool is_about_sizes(const Trial& trial);

/// Returns what TensorRT says of a trial that did not go well.
[[nodiscard]] std::string words_of(const Trial& trial);

/// Returns the parser's words for one of its errors.
[[nodiscard]] std::string words_of_error(const nlohmann::json& error);

/// Returns what was logged besides the parser's own account of its first error.
[[nodiscard]] std::string words_beside_the_error(const nlohmann::json& answer);

/// Returns what the process, and the plugins in it, printed.
[[nodiscard]] std::string printed_in(const nlohmann::json& answer);
[[nodiscard]] std::string with_output(std::string words, const nlohmann::json& answer);

/// Returns whether the text has the name as a word; TensorRT appends _0, _1 ... to names of its own.
[[nodiscard]] bool names(std::string_view text, std::string_view name);

}  // namespace graft::inspect

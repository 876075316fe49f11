// Extracts messages from the results of trials in TensorRT.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "inspect/trials.hpp"

namespace graft::inspect {

/// Returns whether a trial failed because the builder reports that the sizes of the optimization profile contradict
/// each other.
[[nodiscard]] bool is_about_sizes(const Trial& trial);

/// Returns TensorRT's messages on a trial that was not accepted, or a description of how its process ended.
[[nodiscard]] std::string words_of(const Trial& trial);

/// Returns the message of one error of the parser, with its error code and function, as text.
[[nodiscard]] std::string words_of_error(const nlohmann::json& error);

/// Returns the logged errors in a driver's result that the parser's first error does not contain, each preceded by ";
/// ".
[[nodiscard]] std::string words_beside_the_error(const nlohmann::json& answer);

/// Returns what TensorRT's process, and the plugins in it, printed to standard output and standard error.
[[nodiscard]] std::string printed_in(const nlohmann::json& answer);
[[nodiscard]] std::string with_output(std::string words, const nlohmann::json& answer);

/// Returns whether `text` contains `name` as a separate word. A suffix _0, _1 ..., which TensorRT appends to names, may
/// follow.
[[nodiscard]] bool names(std::string_view text, std::string_view name);

}  // namespace graft::inspect

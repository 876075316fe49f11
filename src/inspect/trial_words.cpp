// The engine driver leaves out messages about a missing GPU if there are other messages.
#include "inspect/trial_words.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <utility>
#include <vector>

namespace graft::inspect {
namespace {

using nlohmann::json;

/// Returns TensorRT's messages in a driver's result, except warnings, as one string.
std::string words_of_messages(const json& answer) {
  std::vector<std::string> said;
  for (const json& message : answer.value("messages", json::array())) {
    if (message.value("severity", "") == "warning") continue;
    std::string text = message.value("message", "");
    if (std::find(said.begin(), said.end(), text) == said.end()) said.push_back(std::move(text));
  }
  return fmt::format("{}", fmt::join(said, "; "));
}

bool is_part_of_word(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_'; }

}  // namespace

bool is_about_sizes(const Trial& trial) {
  if (trial.outcome != Outcome::failed) return false;
  const std::string words = trial.answer.value("messages", json::array()).dump();
  return words.find("violate shape constraints") != std::string::npos ||
         words.find("not self-consistent") != std::string::npos;
}

std::string printed_in(const json& answer) {
  return fmt::format("{}", fmt::join(answer.value("output", std::vector<std::string>()), "; "));
}

std::string with_output(std::string words, const json& answer) {
  const std::string printed = printed_in(answer);
  if (printed.empty()) return words;
  return fmt::format("{}{}printed: {}", words, words.empty() ? "" : "; ", printed);
}

std::string words_of(const Trial& trial) {
  const json& answer = trial.answer;
  if (trial.outcome == Outcome::failed) return with_output(words_of_messages(answer), answer);
  const auto last = answer.value("last_messages", std::vector<std::string>());
  std::string after = last.empty() ? "" : fmt::format("; its last message: {}", last.back());
  while (after.ends_with('.')) after.pop_back();
  if (trial.outcome == Outcome::hung) {
    return fmt::format("no answer within {} s{}", answer.value("limit", 0.0), after);
  }
  const auto signal = answer.find("signal");
  const std::string how = signal != answer.end() && signal->is_string()
                              ? fmt::format("by {}", signal->get<std::string>())
                              : fmt::format("with exit code {}", answer.value("return_code", 0));
  return fmt::format("the process ended {}{}", how, after);
}

std::string words_of_error(const json& error) {
  return fmt::format("{} [{}, {}]", error.value("message", ""), error.value("code", ""), error.value("function", ""));
}

std::string words_beside_the_error(const json& answer) {
  std::string words;
  const std::string described = answer["errors"][0].value("message", "");
  for (const json& message : answer.value("messages", json::array())) {
    const std::string text = message.value("message", "");
    const bool is_the_error =
        text.find("ModelImporter.cpp") != std::string::npos || described.find(text) != std::string::npos;
    const bool is_said = words.find(text) != std::string::npos;
    if (message.value("severity", "") != "warning" && !is_the_error && !is_said) words += "; " + text;
  }
  return words;
}

bool names(std::string_view text, std::string_view name) {
  for (std::size_t at = text.find(name); at != std::string_view::npos; at = text.find(name, at + 1)) {
    std::size_t end = at + name.size();
    if (end < text.size() && text[end] == '_') {
      std::size_t digits = end + 1;
      while (digits < text.size() && std::isdigit(static_cast<unsigned char>(text[digits])) != 0) ++digits;
      if (digits > end + 1) end = digits;
    }
    const bool begins = at == 0 || !is_part_of_word(text[at - 1]);
    if (begins && (end == text.size() || !is_part_of_word(text[end]))) return true;
  }
  return false;
}

}  // namespace graft::inspect

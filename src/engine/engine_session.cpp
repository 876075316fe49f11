// Collects TensorRT's messages until the outcome of the command is known.
#include "engine/engine_session.hpp"

#include <cstddef>

namespace graft::engine {
namespace {

std::string renamed(std::string text, const Renamings& renamings) {
  for (const auto& [from, to] : renamings) {
    for (std::size_t at = text.find(from); at != std::string::npos; at = text.find(from, at + to.size())) {
      text.replace(at, from.size(), to);
    }
  }
  return text;
}

EngineError with_messages(const EngineError& error, const std::vector<std::string>& errors) {
  constexpr std::size_t most = 5;
  EngineFailure failure = error.failure();
  if (failure.kind != "build") return error;
  const std::size_t first = errors.size() > most ? errors.size() - most : 0;
  for (std::size_t i = first; i < errors.size(); ++i) failure.message += "\nTensorRT: " + errors[i];
  return {error.kind(), std::move(failure)};
}

EngineError renamed(const EngineError& error, const Renamings& renamings) {
  EngineFailure failure = error.failure();
  failure.message = renamed(std::move(failure.message), renamings);
  failure.next_step = renamed(std::move(failure.next_step), renamings);
  return {error.kind(), std::move(failure)};
}

}  // namespace

EngineAnswer ask_engine_driver(const EngineDriver& driver, const std::vector<std::string>& arguments,
                               const DriverCallbacks& callbacks, const Renamings& renamings) {
  EngineAnswer answer;
  std::vector<std::string> errors;
  DriverCallbacks listening = callbacks;
  listening.on_log = [&](std::string_view severity, std::string_view message) {
    if (severity == "warning") answer.warnings.emplace_back(message);
    if (severity == "error" || severity == "internal_error") errors.emplace_back(message);
    if (callbacks.on_log) callbacks.on_log(severity, message);
  };
  try {
    answer.result = run_driver(driver, arguments, listening);
    return answer;
  } catch (const EngineError& error) {
    throw renamed(with_messages(error, errors), renamings);
  }
}

}  // namespace graft::engine

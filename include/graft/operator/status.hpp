// The result of kernels, operators and adapters: success, or an error with a message.
#pragma once

#include <cstdint>
#include <string>
#include <utility>

namespace graft {

enum class StatusCode : std::uint8_t {
  ok,
  invalid_argument,  ///< The argument is wrong: no build and no variant accepts it.
  unsupported,       ///< The argument is valid, but this build or this variant does not support it.
  cuda_error,        ///< The CUDA runtime reported an error.
};

/// Success, or a code and a message that names what was found and what is allowed. Success allocates nothing, so
/// returning a Status inside `enqueue` is free.
class [[nodiscard]] Status {
 public:
  Status() = default;
  Status(StatusCode code, std::string message) : code_(code), message_(std::move(message)) {}

  [[nodiscard]] bool ok() const { return code_ == StatusCode::ok; }
  [[nodiscard]] StatusCode code() const { return code_; }
  [[nodiscard]] const std::string& message() const { return message_; }

 private:
  StatusCode code_ = StatusCode::ok;
  std::string message_;
};

[[nodiscard]] inline Status invalid_argument(std::string message) {
  return {StatusCode::invalid_argument, std::move(message)};
}
[[nodiscard]] inline Status unsupported(std::string message) { return {StatusCode::unsupported, std::move(message)}; }

}  // namespace graft

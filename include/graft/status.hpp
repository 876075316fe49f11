// The result of kernels, operators and adapters: success, or why not.
#pragma once

#include <cstdint>
#include <string>
#include <utility>

namespace graft {

enum class StatusCode : std::uint8_t {
  ok,
  invalid_argument,  ///< The caller gave something that is never allowed.
  unsupported,       ///< Allowed, but this build or this variant cannot do it.
  cuda_error,        ///< The CUDA runtime reported an error.
};

/// Success, or a code with a message that names what was found and what is allowed.
/// Nothing is allocated on success, so returning one costs nothing inside `enqueue`.
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

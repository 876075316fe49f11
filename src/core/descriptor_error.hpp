// Explains why no more file descriptors can be opened.
#pragma once

#include <fmt/format.h>

#include <cerrno>
#include <string_view>
#include <system_error>

#include "graft/error.hpp"

namespace graft {

/// Returns the Error for a failed call that opens file descriptors. `what` is "a pipe" or "a socket", and `number` is
/// the errno.
inline Error error_of_descriptors(std::string_view what, int number) {
  const std::string reason = std::generic_category().message(number);
  if (number != EMFILE && number != ENFILE) {
    return {Error::Kind::internal, fmt::format("{} cannot be created: {}", what, reason)};
  }
  return Error(fmt::format("{} to another process cannot be created: {}\n{}", what, reason,
                           number == EMFILE ? "Allow more open files and run again: ulimit -n 1024"
                                            : "The system has reached its limit of open files: close other programs"));
}

}  // namespace graft

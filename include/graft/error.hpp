// The exception that importers, passes and the command line throw.
#pragma once

#include <stdexcept>
#include <string>
#include <utility>

namespace graft {

/// An error whose message says what happened, where, and how to continue. `kind` determines the exit code of the
/// command line (the guide "The command line").
class Error : public std::runtime_error {
 public:
  enum class Kind {
    answer_is_no,  ///< Exit code 1: the work was done and its result is negative.
    bad_input,     ///< Exit code 2: wrong use, or a file that cannot be used.
    missing_tool,  ///< Exit code 3: something that has to be installed is missing.
    internal,      ///< Exit code 4: a defect of Graft itself.
  };

  Error(Kind kind, const std::string& message) : std::runtime_error(message), kind_(kind) {}
  explicit Error(const std::string& message) : Error(Kind::bad_input, message) {}

  [[nodiscard]] Kind kind() const { return kind_; }

 private:
  Kind kind_;
};

}  // namespace graft

// The exception of the process in which TensorRT runs.
#pragma once

#include <string>
#include <utility>

#include "graft/error.hpp"

namespace graft {

/// A failure that the engine driver reports. python/graft/engine/README.md describes the kinds and their facts.
struct EngineFailure {
  std::string kind = {};  ///< The kind of failure: "parse", "build", "crash", "hang", "shapes", "target", "option" ...
  std::string message = {};    ///< The message, which names the file, the node or the option.
  std::string next_step = {};  ///< The action for the user; may be empty.
  std::string library = {};    ///< The plugin library that caused the failure; empty where no library did.
  /// The reason why `library` cannot be loaded, such as "no_file", "architecture" or "dependency";
  /// python/graft/engine/README.md lists all reasons. Empty for other failures.
  std::string cause = {};
  std::string facts = "{}";  ///< All other facts as a JSON object: the parser's `errors`, the `signal` of a crash ...
};

/// Thrown where TensorRT is not installed, refuses a model or crashes. what() is the message and, on a line of its own,
/// the next step.
class EngineError : public Error {
 public:
  EngineError(Kind kind, EngineFailure failure)
      : Error(kind, failure.next_step.empty() ? failure.message : failure.message + "\n" + failure.next_step),
        failure_(std::move(failure)) {}

  [[nodiscard]] const EngineFailure& failure() const { return failure_; }

 private:
  EngineFailure failure_;
};

}  // namespace graft

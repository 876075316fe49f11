// The exception of the process in which TensorRT runs.
#pragma once

#include <string>
#include <utility>

#include "graft/error.hpp"

namespace graft {

/// What the engine driver says of its failure (python/graft/engine/README.md).
struct EngineFailure {
  std::string kind = {};     ///< "parse", "build", "crash", "hang", "shapes", "target", "option", "plugin_library" ...
  std::string message = {};  ///< What happened, and where.
  std::string next_step = {};  ///< What to do; may be empty.
  std::string library = {};    ///< The plugin library that is to blame; empty where none is.
  std::string cause = {};      ///< Why it is (docs/guide/plugin_not_found.md).
  std::string facts = "{}";    ///< The whole of it, a JSON object: the parser's `errors`, the `signal` of a crash ...
};

/// TensorRT refused, crashed or is not there. The text is the message and, on a line of its own, the next step.
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

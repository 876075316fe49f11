// Errors that say nothing of a model or its inputs: an engine cannot compute them.
#pragma once

#include <string>

#include "graft/error.hpp"

namespace graft::runtime {

/// An engine does not compute these inputs as ONNX says, and another engine may. Other inputs are no way out: a
/// comparison with inputs that were chosen to fit an engine shows nothing.
class EngineLimit : public Error {
 public:
  explicit EngineLimit(const std::string& text) : Error(text) {}
};

}  // namespace graft::runtime

// Errors that state a limit of an engine and do not mean that a model or its inputs are wrong.
#pragma once

#include <string>

#include "graft/error.hpp"

namespace graft::runtime {

/// Thrown when an engine does not compute these inputs as ONNX specifies, while another engine may. The caller must not
/// try other inputs instead: a comparison with inputs that were chosen to fit an engine shows nothing.
class EngineLimit : public Error {
 public:
  explicit EngineLimit(const std::string& text) : Error(text) {}
};

}  // namespace graft::runtime

// Which engine a compiled model runs in, where several could.
#pragma once

#include <string>

namespace graft::runtime {

struct Answer {
  std::string engine;  ///< "ONNX Runtime 1.31.1"
  /// Why it is not the engine that comes first: "ONNX Runtime 1.31.1 refuses it: ..."; empty where it is.
  std::string reason = {};
};

/// What a compiled model of an engine that chooses between others has next to CompiledModel.
class HasAnswer {
 public:
  HasAnswer() = default;
  HasAnswer(const HasAnswer&) = delete;
  HasAnswer& operator=(const HasAnswer&) = delete;
  virtual ~HasAnswer() = default;

  /// Known when the model is compiled; may change in a run, where an engine turns out to contradict itself.
  [[nodiscard]] virtual Answer answer() const = 0;
};

}  // namespace graft::runtime

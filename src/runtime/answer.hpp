// The engine that runs a compiled model, where several engines could run it.
#pragma once

#include <string>

namespace graft::runtime {

struct Answer {
  std::string engine;  ///< "ONNX Runtime 1.31.1"
  /// The reason why this is not the engine of first choice, for example "ONNX Runtime 1.31.1 refuses it: ...". Empty if
  /// it is the engine of first choice.
  std::string reason = {};
};

/// An interface that compiled models implement in addition to CompiledModel if their engine chooses between several
/// engines.
class HasAnswer {
 public:
  HasAnswer() = default;
  HasAnswer(const HasAnswer&) = delete;
  HasAnswer& operator=(const HasAnswer&) = delete;
  virtual ~HasAnswer() = default;

  /// Returns the engine that runs the model. The answer exists as soon as the model is compiled. It may change during a
  /// run, when an engine turns out to contradict itself.
  [[nodiscard]] virtual Answer answer() const = 0;
};

}  // namespace graft::runtime

// Reports which engine runs a compiled model, if several engines could run it.
#pragma once

#include <string>
#include <string_view>

#include "runtime/engine.hpp"

namespace graft::runtime {

struct Answer {
  std::string engine;  ///< The name and version of the engine, for example "ONNX Runtime 1.31.1".
  /// Why the engine of first choice does not run the model, for example "ONNX Runtime 1.31.1 refuses it: ...". Empty if
  /// it does.
  std::string reason = {};
  /// How the engine rewrote the model before it ran it, for example "ONNX Runtime 1.31.1 ran a rewritten copy, with
  /// operator set 28 replaced by 26". Empty if the nodes and opsets are those of the model.
  std::string rewritten = {};
};

/// An interface that compiled models implement in addition to CompiledModel if their engine chooses between several
/// engines.
class HasAnswer {
 public:
  HasAnswer() = default;
  HasAnswer(const HasAnswer&) = delete;
  HasAnswer& operator=(const HasAnswer&) = delete;
  virtual ~HasAnswer() = default;

  /// Returns the engine that runs the model. The choice exists as soon as the model is compiled. It may change during a
  /// run: if repeated runs of an engine return different results, another engine runs the model.
  [[nodiscard]] virtual Answer answer() const = 0;
};

/// Returns the engine that runs a compiled model: `engine`, unless that engine chooses between several engines.
[[nodiscard]] inline Answer answer_of(const CompiledModel& compiled, std::string_view engine) {
  const auto* has_answer = dynamic_cast<const HasAnswer*>(&compiled);
  return has_answer != nullptr ? has_answer->answer() : Answer{.engine = std::string(engine)};
}

}  // namespace graft::runtime

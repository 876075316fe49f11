// What a compiled model of an engine may have beside CompiledModel: outputs that stay where the engine wrote them.
#pragma once

#include "runtime/engine.hpp"

namespace graft::runtime {

class KeepsOutputs {
 public:
  KeepsOutputs() = default;
  KeepsOutputs(const KeepsOutputs&) = delete;
  KeepsOutputs& operator=(const KeepsOutputs&) = delete;
  virtual ~KeepsOutputs() = default;

  /// CompiledModel::run whose outputs own the memory that the engine wrote; where it cannot leave that, they are
  /// copies.
  [[nodiscard]] virtual TensorMap run_and_keep(const TensorMap& inputs) = 0;
};

}  // namespace graft::runtime

// An interface for compiled models whose outputs can stay in the memory that the engine wrote.
#pragma once

#include "runtime/engine.hpp"

namespace graft::runtime {

class KeepsOutputs {
 public:
  KeepsOutputs() = default;
  KeepsOutputs(const KeepsOutputs&) = delete;
  KeepsOutputs& operator=(const KeepsOutputs&) = delete;
  virtual ~KeepsOutputs() = default;

  /// Runs the model as CompiledModel::run does and returns outputs that own the memory the engine wrote. If the engine
  /// cannot hand over that memory, the outputs are copies.
  [[nodiscard]] virtual TensorMap run_and_keep(const TensorMap& inputs) = 0;
};

}  // namespace graft::runtime

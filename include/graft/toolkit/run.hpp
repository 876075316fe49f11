// Running a model on the CPU.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "graft/toolkit/cpu_engine.hpp"
#include "graft/toolkit/cut.hpp"
#include "graft/toolkit/export.hpp"
#include "graft/toolkit/model.hpp"
#include "graft/toolkit/progress.hpp"
#include "graft/toolkit/tensor.hpp"

namespace graft::toolkit {

struct SessionOptions {
  int threads = 0;  ///< 0: as many as the machine has cores.
  /// Compute Graft's operators by their own CPU kernels, in the types that the model declares, not as their ONNX
  /// functions. Error where the library of one is not loaded, so that there is no kernel.
  bool own_kernels = false;
  CpuEngine engine = CpuEngine::automatic;
  /// Of the compilation, which is one step for the engine; the token is looked at before each run too.
  Watch watch = {};
};

/// A model that is compiled once and run again and again, with other shapes where its inputs are dynamic. Not from two
/// threads at once.
class GRAFT_API Session {
 public:
  /// Throws Error naming the node that the CPU engine refuses, and (missing_tool) in a build without one; Cancelled.
  explicit Session(const Model& model, const SessionOptions& options = {});
  /// Both halves of a network that was cut, one after the other, as one model.
  explicit Session(const CutNetwork& network, const SessionOptions& options = {});
  ~Session();
  Session(Session&&) noexcept;
  Session& operator=(Session&&) noexcept;

  /// Takes every input by name and returns every output by name. f16 and bf16 are computed in f32 and rounded once.
  /// Throws Error for a missing or unknown input and for one of another type, rank or fixed size, naming it, and for an
  /// output whose type is not among DType; Cancelled.
  [[nodiscard]] Tensors run(const Tensors& inputs);
  /// The same run without copies: what the engine wrote is kept by the outputs' owners.
  [[nodiscard]] TensorViews run_views(const TensorViews& inputs);
  /// The same run; `look` is shown the outputs where the engine left them, and they are gone when it returns.
  void run(const TensorViews& inputs, const std::function<void(const TensorViews& outputs)>& look);

  /// The CPU engine that runs it: "ONNX Runtime 1.31.1".
  [[nodiscard]] const std::string& ran_in() const;
  /// Why it is not the engine that comes first, and what the engine is known to compute wrongly; mostly empty.
  [[nodiscard]] const std::vector<std::string>& left_out() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace graft::toolkit

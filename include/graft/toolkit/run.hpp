// Runs a model on the CPU.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "graft/toolkit/cpu_engine.hpp"
#include "graft/toolkit/cut.hpp"
#include "graft/toolkit/data.hpp"
#include "graft/toolkit/export.hpp"
#include "graft/toolkit/model.hpp"
#include "graft/toolkit/progress.hpp"
#include "graft/toolkit/tensor.hpp"

namespace graft::toolkit {

struct SessionOptions {
  int threads = 0;  ///< Number of threads; 0 stands for the number of the machine's cores.
  /// Whether Graft's operators run by their own CPU kernels, in the types that the model declares, instead of by their
  /// ONNX functions. Throws Error for an operator whose library is not loaded and which therefore has no kernel.
  bool own_kernels = false;
  CpuEngine engine = CpuEngine::automatic;
  /// Progress and cancellation of the compilation, which is a single step of the engine. The token also cancels a run;
  /// a session whose token was used throws Cancelled in every later run.
  Watch watch = {};
};

/// A compiled model, for repeated runs; shapes of dynamic inputs may differ between runs. Two threads must not use a
/// session at the same time.
class GRAFT_API Session {
 public:
  /// Compiles a model. Throws Error naming the node that the CPU engine refuses; Error (missing_tool) in a build
  /// without a CPU engine; Cancelled.
  explicit Session(const Model& model, const SessionOptions& options = {});
  /// Compiles both halves of a cut network, which run one after the other as one model.
  explicit Session(const CutNetwork& network, const SessionOptions& options = {});
  ~Session();
  Session(Session&&) noexcept;
  Session& operator=(Session&&) noexcept;

  /// Runs the model. `inputs` has every input by name (the only input may have the empty name), and the result every
  /// output. Inputs are converted by the rules of the guide "Give data to Graft": to the type of the model, and with a
  /// first axis for a single sample. f16 and bf16 tensors are computed in f32 and rounded once. Throws Error, naming
  /// the input, for a missing or unknown input and for an input that does not fit; Error for an output whose type is
  /// not a TensorType; Cancelled.
  [[nodiscard]] Tensors run(const Tensors& inputs);
  /// Runs the model once for each run of the data, and joins each output along its first axis. Throws Error for an
  /// output without a first axis, or whose other sizes differ between the runs.
  [[nodiscard]] Tensors run_data(const DataRuns& data);
  /// Reads the data as read_data does, and runs the model on them.
  [[nodiscard]] Tensors run_data(const DataFiles& files);
  /// Runs the model without copying tensors, except inputs that have to be converted. The owner of each output holds
  /// the memory to which the engine wrote.
  [[nodiscard]] TensorViews run_views(const TensorViews& inputs);
  /// Runs the model and calls `look` with views of the outputs in the engine's memory. The views are invalid after
  /// `look` returns.
  void run(const TensorViews& inputs, const std::function<void(const TensorViews& outputs)>& look);

  /// Returns a sentence for each input of the last run that was converted; empty if no input was.
  [[nodiscard]] const std::vector<std::string>& data_notes() const;
  /// Returns the CPU engine that runs the model: "ONNX Runtime 1.31.1".
  [[nodiscard]] const std::string& ran_in() const;
  /// Returns why the first choice of engines does not run the model, known wrong results of the engine that runs it,
  /// and how this engine rewrote the model; empty for most models.
  [[nodiscard]] const std::vector<std::string>& left_out() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace graft::toolkit

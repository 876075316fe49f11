// The engines that run models on the CPU, by the choice of the caller and the purpose of the run.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "graft/error.hpp"
#include "graft/toolkit/cpu_engine.hpp"
#include "onnx/model.hpp"
#include "runtime/engine.hpp"
#include "verify/judge/dispute.hpp"

namespace graft::toolkit {

/// The purpose of running models. It decides whether ONNX Runtime or OpenVINO is used first with CpuEngine::automatic,
/// and has no effect on the other values of CpuEngine.
enum class Purpose : std::uint8_t {
  values,  ///< Results are returned or compared: ONNX Runtime is first, and OpenVINO runs the models that it refuses.
  proofs,  ///< Many small rewrites are proven: OpenVINO runs each model twice, and ONNX Runtime repeats a sample.
};

/// Returns Purpose::proofs, with which OpenVINO is the first engine, for Graft's own kernels, which run only in
/// OpenVINO. Returns Purpose::values otherwise.
[[nodiscard]] Purpose purpose_of_run(bool own_kernels);

/// Returns the engine for a choice and a purpose; repeated calls return the same object. Wherever it uses OpenVINO, it
/// uses runtime::default_engine(). If the choice is ONNX Runtime, ONNX Runtime also runs the models with Graft's own
/// CPU kernels.
[[nodiscard]] const runtime::Engine& engine_of(CpuEngine choice, Purpose purpose);

/// Loads the model, without a conversion, in ONNX Runtime. If ONNX Runtime refuses it, returns its message in the form
/// "ONNX Runtime 1.31.1: ..."; otherwise returns an empty string. Throws Error (missing_tool) if ONNX Runtime is not
/// installed, and Stopped if `should_stop` returns true.
[[nodiscard]] std::string refusal_of_onnxruntime(const graft::onnx::Model& model,
                                                 const std::function<bool()>& should_stop);

/// The engines that ran the models of a call. Several threads may use an object at once.
class UsedEngines {
 public:
  /// Records in which engine a model was compiled.
  void note(const graft::onnx::Model& model, const runtime::CompiledModel& compiled, const runtime::Engine& engine);
  /// Returns "ONNX Runtime 1.31.1"; several names are joined by commas, in the order in which they were recorded.
  [[nodiscard]] std::string names() const;
  /// Returns why models did not run in the first choice of engines, and known wrong results of the engines that ran
  /// them; each line once.
  [[nodiscard]] std::vector<std::string> reasons() const;
  /// Returns how an engine rewrote a model before it ran it; each line once.
  [[nodiscard]] std::vector<std::string> rewrites() const;

 private:
  mutable std::mutex mutex_;
  std::vector<std::string> names_;
  std::vector<std::string> reasons_;
  std::vector<std::string> rewrites_;
};

/// Returns lines for reports about engines that were not used or that are known to be wrong, without duplicates. If
/// ONNX Runtime is the first choice (CpuEngine::automatic and Purpose::values), these are UsedEngines::reasons and
/// UsedEngines::rewrites of `used`. Otherwise these are UsedEngines::rewrites and a line for each of `models` that has
/// a node which an engine is known to compute wrongly. That line states whether the engine was left out, or ran the
/// model because it was chosen or is the only engine.
[[nodiscard]] std::vector<std::string> engines_left_out(const UsedEngines& used, CpuEngine choice, Purpose purpose,
                                                        const std::vector<const graft::onnx::Model*>& models);

/// Compiles a model. If the engine refuses a model that ONNX forbids, throws Error naming file, node and attribute,
/// because the engine's own message names no attribute and no next step. Otherwise throws the engine's error.
[[nodiscard]] std::unique_ptr<runtime::CompiledModel> compile_or_name_fault(const runtime::Engine& engine,
                                                                            const graft::onnx::Model& model,
                                                                            const runtime::CompileOptions& options);

/// Returns an engine that compiles as compile_or_name_fault does, and records in `used` each model that it compiles.
/// `engine` and `used` have to outlive it.
[[nodiscard]] std::unique_ptr<runtime::Engine> make_noting_engine(const runtime::Engine& engine, UsedEngines& used);

/// Returns the Error (answer_is_no) for a dispute between engines, for callers that return no verdict.
[[nodiscard]] Error error_of(const verify::Disputed& disputed);

/// Returns the result of a function that runs models. Throws an Error if two engines dispute it.
template <class Function>
auto run_with_disputes_as_errors(Function&& function) {
  try {
    return function();
  } catch (const verify::Disputed& disputed) {
    throw error_of(disputed);
  }
}

/// Throws Error if `own_kernels` is set and the engines of `choice` cannot run Graft's own CPU kernels.
void check_own_kernels(CpuEngine choice, bool own_kernels);

}  // namespace graft::toolkit

// The engines by which models run on the CPU, by what callers choose.
#pragma once

#include <cstdint>
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

/// What models are run for. It decides which engine comes first with CpuEngine::automatic; the others have one order.
enum class Purpose : std::uint8_t {
  values,  ///< Results that are returned or compared: ONNX Runtime, and OpenVINO for what it does not run.
  proofs,  ///< Many small rewrites: OpenVINO, checked by a repetition, and by a sample in ONNX Runtime.
};

/// Graft's own kernels run in OpenVINO alone.
[[nodiscard]] inline Purpose purpose_of_run(bool own_kernels) {
  return own_kernels ? Purpose::proofs : Purpose::values;
}

/// One for the process. OpenVINO is the default engine of the build; ONNX Runtime asks it for what it cannot do itself.
[[nodiscard]] const runtime::Engine& engine_of(CpuEngine choice, Purpose purpose);

/// The engines that ran the models of one call. May be used from several threads.
class UsedEngines {
 public:
  /// Notes in which engine a model was compiled.
  void note(const graft::onnx::Model& model, const runtime::CompiledModel& compiled, const runtime::Engine& engine);
  /// "ONNX Runtime 1.31.1"; several are joined by commas, in the order in which they were noted.
  [[nodiscard]] std::string names() const;
  /// Why a model ran in another engine than the first choice, and what that engine is known for; each line once.
  [[nodiscard]] std::vector<std::string> reasons() const;

 private:
  mutable std::mutex mutex_;
  std::vector<std::string> names_;
  std::vector<std::string> reasons_;
};

/// For reports, each line once. Of models that are run for values with CpuEngine::automatic: why a model ran in another
/// engine than the first choice, and what that engine is known for; such lines are in `used`. Otherwise: which engine
/// is left out of which model since it is known to compute a node wrongly, or runs it all the same since it was named
/// or is the only one.
[[nodiscard]] std::vector<std::string> engines_left_out(const UsedEngines& used, CpuEngine choice, Purpose purpose,
                                                        const std::vector<const graft::onnx::Model*>& models);

/// An engine that notes what it compiles. Both have to outlive it.
[[nodiscard]] std::unique_ptr<runtime::Engine> make_noting_engine(const runtime::Engine& engine, UsedEngines& used);

/// What reaches a caller where nothing makes a verdict of a dispute.
[[nodiscard]] Error error_of(const verify::Disputed& disputed);

/// Runs a function, and throws an Error where two engines dispute its result.
template <class Function>
auto run_with_disputes_as_errors(Function&& function) {
  try {
    return function();
  } catch (const verify::Disputed& disputed) {
    throw error_of(disputed);
  }
}

/// Throws Error where Graft's own CPU kernels are asked of an engine that has none.
void check_own_kernels(CpuEngine choice, bool own_kernels);

}  // namespace graft::toolkit

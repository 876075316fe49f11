// The engines by which models run on the CPU, by what callers choose.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "graft/error.hpp"
#include "graft/toolkit/cpu_engine.hpp"
#include "onnx/model.hpp"
#include "runtime/engine.hpp"
#include "verify/dispute.hpp"

namespace graft::toolkit {

/// Whether CpuEngine::automatic runs a sample by both engines.
enum class Sampling : std::uint8_t { none, large_networks };

/// One for the process. OpenVINO is the default engine of the build; ONNX Runtime asks it for what it cannot do itself.
[[nodiscard]] const runtime::Engine& engine_of(CpuEngine choice, Sampling sampling = Sampling::none);

/// For reports: which engine is left out of which model since it is known to compute a node wrongly, or runs it all the
/// same since it was asked for by name. Each line once.
[[nodiscard]] std::vector<std::string> engines_left_out(CpuEngine choice,
                                                        const std::vector<const graft::onnx::Model*>& models);

/// What reaches a caller where nothing makes a verdict of a dispute.
[[nodiscard]] Error error_of(const verify::Disputed& disputed);

/// Runs what may be disputed.
template <class Function>
auto believed(Function&& function) {
  try {
    return function();
  } catch (const verify::Disputed& disputed) {
    throw error_of(disputed);
  }
}

/// Throws Error where Graft's own CPU kernels are asked of an engine that has none.
void check_own_kernels(CpuEngine choice, bool own_kernels);

}  // namespace graft::toolkit

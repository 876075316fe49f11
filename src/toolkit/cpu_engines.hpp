// The engines by which models run on the CPU, by what callers choose.
#pragma once

#include "graft/toolkit/cpu_engine.hpp"
#include "runtime/engine.hpp"

namespace graft::toolkit {

/// One for the process. OpenVINO is the default engine of the build; ONNX Runtime asks it for what it cannot do itself.
[[nodiscard]] const runtime::Engine& engine_of(CpuEngine choice);

/// Throws Error where Graft's own CPU kernels are asked of an engine that has none.
void check_own_kernels(CpuEngine choice, bool own_kernels);

}  // namespace graft::toolkit

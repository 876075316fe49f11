// The CPU engine on OpenVINO, which runs models without a second process.
#pragma once

#include "runtime/engine.hpp"

namespace graft::runtime {

/// Returns the engine that runs OpenVINO in this process. Limits of OpenVINO 2026.4: Integers are stored in 32 bits. An
/// input with larger integers is refused; larger integers inside the model are truncated without an error. Quotients,
/// remainders, powers, matrix products and reductions of integers are computed in f32. Integers beyond 2^24 are
/// therefore refused in them, except in sub-graphs, where they are not checked. A Loop that runs zero times is refused.
/// Strings are neither accepted as inputs nor returned. Arithmetic in f64 is not evaluated at compile time.
[[nodiscard]] const Engine& openvino_engine();

}  // namespace graft::runtime

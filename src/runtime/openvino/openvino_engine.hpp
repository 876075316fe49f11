// The CPU engine on OpenVINO, which runs models without a second process.
#pragma once

#include "runtime/engine.hpp"

namespace graft::runtime {

/// Returns the engine in this process. Limits of OpenVINO 2026.4: integers are stored in 32 bits, and larger integers
/// inside the model are truncated without an error (an input that holds one is refused); quotients, remainders, powers,
/// matrix products and reductions of integers are computed in f32, so that integers beyond 2^24 are refused, except in
/// sub-graphs, where they are not checked; a Loop that runs zero times is refused; strings are neither accepted as
/// inputs nor returned; arithmetic in f64 is not evaluated at compile time.
[[nodiscard]] const Engine& openvino_engine();

}  // namespace graft::runtime

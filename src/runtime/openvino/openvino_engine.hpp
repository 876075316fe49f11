// The CPU engine on OpenVINO: runs any model that Graft holds.
#pragma once

#include "runtime/engine.hpp"

namespace graft::runtime {

/// Limits of OpenVINO 2026.4: integers are held in 32 bits, and those beyond inside the model are cut off without a
/// word (an input that has them is refused); quotients, remainders, powers, matrix products and reductions of integers
/// are computed in f32, so those beyond 2^24 are refused, but for those in a sub-graph; a Loop that runs zero times
/// is refused; text is neither taken nor returned; arithmetic in f64 is not computed ahead.
[[nodiscard]] const Engine& openvino_engine();

}  // namespace graft::runtime

// Monte Carlo arithmetic: a model whose arithmetic rounds differently in each run.
#pragma once

#include "runtime/engine.hpp"

namespace ov {
class Model;
}

namespace graft::runtime {

/// Moves the last bits of each floating-point result that an operation rounds, of what goes into a sum and of weights,
/// up or down at random (Parker 1997, Monte Carlo arithmetic): runtime::RoundingNoise says by how much. Results that
/// are exact stay: data movement, selections, whatever follows from shapes alone, and integers of small size, which
/// arithmetic in f32 does not round. Normalizations become mean, variance and division, so that what they enlarge
/// shows. Also in sub-graphs.
void add_rounding_noise(ov::Model& model, const std::shared_ptr<runtime::RoundingNoise>& noise);

}  // namespace graft::runtime

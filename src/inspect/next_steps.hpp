// Determines what to do after a network was judged, until it is an engine.
#pragma once

#include <cstddef>
#include <vector>

#include "inspect/verdicts.hpp"

namespace graft::inspect {

using report::NextStep;

/// Returns the steps in the order in which they are to be run. A model that must be converted first, or that is not
/// known to run, gets no step `build`. A model that is already converted (`is_converted`), or that TensorRT built
/// unchanged (`is_built`), gets no step `convert`. Before a step `build`, a step `fuse` says that a conversion fuses
/// `fused` nodes.
[[nodiscard]] std::vector<NextStep> next_steps(const std::vector<NodeSupport>& nodes, bool is_converted,
                                               bool is_built = false, std::size_t fused = 0);

}  // namespace graft::inspect

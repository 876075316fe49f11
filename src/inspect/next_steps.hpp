// Determines what to do after a network was judged, until it is an engine.
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <vector>

#include "inspect/verdicts.hpp"

namespace graft::inspect {

using report::NextStep;

/// Returns whether `graft new` writes an operator for the node of this name.
using CanDefine = std::function<bool(const std::string& node)>;

/// Returns the steps in the order in which they are to be run. A model that must be converted first, or that is not
/// known to run, gets no step `build`. A model that is already converted (`is_converted`), or that TensorRT built
/// unchanged (`is_built`), gets no step `convert`. Before a step `build`, a step `fuse` says that a conversion fuses
/// `fused` nodes. A step `write` needs a node that `can_define` accepts; null accepts all.
[[nodiscard]] std::vector<NextStep> next_steps(const std::vector<NodeSupport>& nodes, bool is_converted,
                                               bool is_built = false, std::size_t fused = 0,
                                               const CanDefine& can_define = nullptr);

}  // namespace graft::inspect

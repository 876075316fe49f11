// Determines what to do after a network was judged, until it is an engine.
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <vector>

#include "inspect/verdicts.hpp"

namespace graft::inspect {

using report::NextStep;

/// A function that returns whether `graft new` can write an operator from the node of this name.
using CanDefine = std::function<bool(const std::string& node)>;

/// Returns the next steps for the user, in the order in which to run them. There is no step `build` if the model must
/// be converted first or is not known to run, and no step `convert` if the model is converted already (`is_converted`)
/// or TensorRT built it unchanged (`is_built`). If `fused` is not 0, a step `fuse` before `build` says that a
/// conversion would fuse this number of nodes. A step `write` requires a node for which `can_define` returns true; null
/// accepts all nodes.
[[nodiscard]] std::vector<NextStep> next_steps(const std::vector<NodeSupport>& nodes, bool is_converted,
                                               bool is_built = false, std::size_t fused = 0,
                                               const CanDefine& can_define = nullptr);

}  // namespace graft::inspect

// The fusions of operators, which are in the folders of the operators (src/ops/<op>/<op>_fusion.cpp), and their order.
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "passes/passes.hpp"

namespace graft::passes {

/// A pass that replaces the nodes which networks write for an operator by that operator. A folder's <op>_fusion.cpp
/// defines one as `extern const OperatorFusion <op>_fusion`.
struct OperatorFusion {
  Pass pass;
  std::string_view after = {};  ///< The pass name of the operator fusion that has to run before, or empty.
  /// Whether the operator computes for any input size what the nodes of the network compute for one size.
  bool lifts_frozen_sizes = false;
};

/// Returns the fusions of operators, in the order of ops.inc. The build generates the list.
[[nodiscard]] std::span<const OperatorFusion* const> operator_fusions();

/// Returns the passes of the fusions: each after the pass that it names, otherwise in the given order. Throws Error if
/// a fusion names a pass that does not exist or, directly or indirectly, itself.
[[nodiscard]] std::vector<Pass> ordered_passes(std::span<const OperatorFusion* const> fusions);

}  // namespace graft::passes

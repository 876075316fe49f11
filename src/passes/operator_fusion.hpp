// The fusions of operators, which are in the folders of the operators (src/ops/<op>/<op>_fusion.cpp), and their order.
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "passes/passes.hpp"

namespace graft::passes {

/// A pass that replaces the nodes which exporters write for an operator by that operator. The file <op>_fusion.cpp in
/// the operator's folder defines it as `extern const OperatorFusion <op>_fusion`.
struct OperatorFusion {
  Pass pass;
  std::string_view after = {};  ///< The pass name of the operator fusion that has to run before, or empty.
  /// Whether the fused operator adapts to any input size although the replaced nodes are correct for one size only.
  /// frozen_size_warnings() does not warn about nodes that such a fusion replaced.
  bool lifts_frozen_sizes = false;
};

/// Returns the fusions of all operators, in the order of ops.inc. The build generates this function.
[[nodiscard]] std::span<const OperatorFusion* const> operator_fusions();

/// Returns the passes of the fusions, reordered so that each runs after the pass named in its `after`. Throws Error if
/// `after` names an unknown pass or there is a cycle.
[[nodiscard]] std::vector<Pass> ordered_passes(std::span<const OperatorFusion* const> fusions);

}  // namespace graft::passes

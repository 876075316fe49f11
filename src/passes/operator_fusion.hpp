// The fusions that operators' folders bring (src/ops/<op>/<op>_fusion.cpp), and the order in which they run.
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "passes/passes.hpp"

namespace graft::passes {

/// A pass that replaces what networks write for an operator by that operator. A folder's <op>_fusion.cpp defines one as
/// `extern const OperatorFusion <op>_fusion`.
struct OperatorFusion {
  Pass pass;
  std::string_view after = {};  ///< The operator fusion that has to run before this one, by its pass name; empty: none.
  bool lifts_frozen_sizes = false;  ///< What a network computed for one size of its input alone, it computes for any.
};

/// One for each operator of ops.inc whose folder has a fusion, in the order of ops.inc. The build generates the list.
[[nodiscard]] std::span<const OperatorFusion* const> operator_fusions();

/// The passes of the fusions, each after the one that it names and otherwise in the given order. Throws Error where a
/// fusion names one that is not there or, directly or not, itself.
[[nodiscard]] std::vector<Pass> ordered_passes(std::span<const OperatorFusion* const> fusions);

}  // namespace graft::passes

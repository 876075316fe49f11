// How verdicts on nodes are shown.
#pragma once

#include <vector>

#include "cli/console.hpp"
#include "inspect/verdicts.hpp"

namespace graft::cli {

[[nodiscard]] Color color_of(inspect::Verdict verdict);

/// Returns true, false, or null where it is not known whether a network with these nodes runs.
[[nodiscard]] Json json_of_runs(const std::vector<inspect::NodeVerdict>& nodes);

}  // namespace graft::cli

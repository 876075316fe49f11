// Verdicts on nodes as JSON.
#pragma once

#include <vector>

#include "inspect/verdicts.hpp"
#include "present/json/values.hpp"

namespace graft::present {

/// Returns true, false, or null where it is not known whether a network with these nodes runs.
[[nodiscard]] Json json_of_runs(const std::vector<inspect::NodeVerdict>& nodes);

}  // namespace graft::present

// Verdicts on nodes as JSON.
#pragma once

#include <vector>

#include "inspect/verdicts.hpp"
#include "present/json/values.hpp"

namespace graft::present {

/// Returns whether a network with these nodes runs; null if this is not known.
[[nodiscard]] Json json_of_runs(const std::vector<report::NodeSupport>& nodes);

}  // namespace graft::present

// The colors of verdicts on nodes.
#pragma once

#include "inspect/verdicts.hpp"
#include "present/text/table.hpp"

namespace graft::present {

/// Returns the color of a verdict: green for plugins, yellow for unknown, red for nodes that do not run, and no color
/// for native and lowered nodes.
[[nodiscard]] Color color_of(report::Support verdict);

}  // namespace graft::present

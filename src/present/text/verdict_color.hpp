// The colors of verdicts on nodes.
#pragma once

#include "inspect/verdicts.hpp"
#include "present/text/table.hpp"

namespace graft::present {

/// One color for what runs as a plugin, one for what does not run, one for what is not known.
[[nodiscard]] Color color_of(inspect::Verdict verdict);

}  // namespace graft::present

// The page of a network in two halves, alone or at the end of the page of `graft convert --cut --report`.
#pragma once

#include "graft/toolkit/cut.hpp"
#include "present/html/report.hpp"

namespace graft::present {

/// Adds the network that was cut, each node by the half that has it, what is handed over, and the comparison with the
/// whole.
void add_cut(report::Report& page, const toolkit::CutResult& result);

[[nodiscard]] report::Report cut_page(const toolkit::CutResult& result);

}  // namespace graft::present

// The page of a network that was cut into two halves, alone or at the end of the page of `graft convert --cut
// --report`.
#pragma once

#include "graft/toolkit/cut.hpp"
#include "present/html/report.hpp"

namespace graft::present {

/// Adds the network that was cut, with each node marked by its half, the tensors that the first half returns to the
/// second, and the comparison of both halves with the whole network.
void add_cut(html::Report& page, const toolkit::CutResult& result);

[[nodiscard]] html::Report cut_page(const toolkit::CutResult& result);

}  // namespace graft::present

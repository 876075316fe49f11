// The page of `graft convert --report`: the network before and after, with what was rewritten.
#pragma once

#include "present/html/report.hpp"
#include "toolkit/convert.hpp"

namespace graft::present {

/// Of a conversion that kept the original.
[[nodiscard]] report::Report convert_page(const toolkit::Conversion& conversion);

}  // namespace graft::present

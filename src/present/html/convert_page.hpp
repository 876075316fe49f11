// The page of `graft convert --report`: the network before and after the conversion, with the rewrites.
#pragma once

#include "present/html/report.hpp"
#include "toolkit/convert.hpp"

namespace graft::present {

/// Returns the page of a conversion, which must contain the original model.
[[nodiscard]] html::Report convert_page(const toolkit::Conversion& conversion);

}  // namespace graft::present

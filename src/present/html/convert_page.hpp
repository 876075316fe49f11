// The page of `graft convert --report`: the network before and after the conversion, with the rewrites.
#pragma once

#include "graft/report/convert.hpp"
#include "present/html/report.hpp"

namespace graft::present {

/// Returns the page of a conversion, which must contain the original model.
[[nodiscard]] html::Report convert_page(const report::ConvertReport& report);

}  // namespace graft::present

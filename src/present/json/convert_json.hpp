// The report of `graft convert` as JSON.
#pragma once

#include "graft/report/convert.hpp"
#include "present/json/values.hpp"

namespace graft::present {

[[nodiscard]] Json convert_json(const report::ConvertReport& report);

}  // namespace graft::present

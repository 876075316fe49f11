// The report of `graft inspect` as JSON.
#pragma once

#include "graft/report/inspect.hpp"
#include "present/json/values.hpp"

namespace graft::present {

[[nodiscard]] Json inspect_json(const report::InspectReport& report);

}  // namespace graft::present

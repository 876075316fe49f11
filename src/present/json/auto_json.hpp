// The report of `graft auto` as JSON.
#pragma once

#include "graft/report/auto.hpp"
#include "present/json/values.hpp"

namespace graft::present {

[[nodiscard]] Json auto_json(const report::AutoReport& report);

}  // namespace graft::present

// The result of `graft verify` as JSON.
#pragma once

#include "graft/report/verify.hpp"
#include "present/json/values.hpp"

namespace graft::present {

/// Returns the report in the schema graft.verify.
[[nodiscard]] Json verify_json(const report::VerifyReport& report);

}  // namespace graft::present

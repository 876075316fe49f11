// The results of `graft verify` as JSON.
#pragma once

#include "graft/report/layers.hpp"
#include "graft/report/verify.hpp"
#include "present/json/values.hpp"

namespace graft::present {

/// Returns the report in the schema graft.verify.
[[nodiscard]] Json verify_json(const report::VerifyReport& report);

/// Returns the report in the schema graft.verify.layers.
[[nodiscard]] Json layers_json(const report::LayersReport& report);

}  // namespace graft::present

// The result of `graft build` as JSON.
#pragma once

#include <string>

#include "present/json/values.hpp"
#include "toolkit/build.hpp"

namespace graft::present {

/// Returns the result event of the engine driver (see python/graft/engine/README.md) with the reason for each plugin,
/// and `layers` and `layer_summary` if they were requested.
[[nodiscard]] Json build_json(const toolkit::BuildReport& report, const std::string& model);

}  // namespace graft::present

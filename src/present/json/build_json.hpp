// `graft build --json`.
#pragma once

#include <string>

#include "present/json/values.hpp"
#include "toolkit/build.hpp"

namespace graft::present {

/// What the engine driver tells (python/graft/engine/README.md), with the reasons for plugins; `layers` and
/// `layer_summary` where they were asked for.
[[nodiscard]] Json build_json(const toolkit::BuildReport& report, const std::string& model);

}  // namespace graft::present

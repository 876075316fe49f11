// The result of `graft plugins` as JSON.
#pragma once

#include "present/json/values.hpp"
#include "toolkit/plugins.hpp"

namespace graft::present {

/// Checked: with what the checks say in all.
[[nodiscard]] Json to_json(const toolkit::PluginsReport& report, bool is_checked);

}  // namespace graft::present

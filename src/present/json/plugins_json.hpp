// The result of `graft plugins` as JSON.
#pragma once

#include "present/json/values.hpp"
#include "toolkit/plugins.hpp"

namespace graft::present {

/// Returns the libraries with their creators. If `is_checked`, `conforms` and the counts of `checks` are added.
[[nodiscard]] Json to_json(const toolkit::PluginsReport& report, bool is_checked);

}  // namespace graft::present

// The check of values in `graft convert --json` and `graft quantize --json`.
#pragma once

#include <string>

#include "present/json/values.hpp"
#include "toolkit/value_check.hpp"

namespace graft::present {

/// Returns the check, or null if a comparison was not tried. `verify` is the command that repeats the check.
[[nodiscard]] Json to_json(const toolkit::ValueCheck& check, const std::string& verify);

}  // namespace graft::present

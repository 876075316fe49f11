// The result of `graft convert` as JSON.
#pragma once

#include "present/json/values.hpp"
#include "toolkit/convert.hpp"

namespace graft::present {

[[nodiscard]] Json to_json(const toolkit::Conversion& conversion);

}  // namespace graft::present

// The result of `graft inspect` as JSON.
#pragma once

#include "present/json/values.hpp"
#include "toolkit/inspect.hpp"

namespace graft::present {

[[nodiscard]] Json to_json(const toolkit::Inspection& inspection);

}  // namespace graft::present

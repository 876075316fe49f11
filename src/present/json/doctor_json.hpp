// The result of `graft doctor` as JSON.
#pragma once

#include <vector>

#include "present/json/values.hpp"
#include "present/text/doctor_text.hpp"

namespace graft::present {

[[nodiscard]] Json to_json(const std::vector<Finding>& findings);

}  // namespace graft::present

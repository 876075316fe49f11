// The result of cutting a network into two halves, as JSON.
#pragma once

#include "graft/toolkit/cut.hpp"
#include "present/json/values.hpp"

namespace graft::present {

/// Returns the content of the file that names both halves, the path of that file, and the result of the comparison with
/// the whole network.
[[nodiscard]] Json to_json(const toolkit::CutResult& result, const toolkit::CutFiles& files);

}  // namespace graft::present

// A network in two halves, as JSON.
#pragma once

#include "graft/toolkit/cut.hpp"
#include "present/json/values.hpp"

namespace graft::present {

/// The content of the file that names both halves, the file itself, and what became of the comparison.
[[nodiscard]] Json to_json(const toolkit::CutResult& result, const toolkit::CutFiles& files);

}  // namespace graft::present

// The types and shapes of tensors, in words.
#pragma once

#include <vector>

#include "graft/report/port.hpp"
#include "present/text/table.hpp"

namespace graft::present {

/// Returns a row for each output of a run: "logits  f32 2x10". Every output has a shape.
[[nodiscard]] Table outputs_table(const std::vector<report::Port>& outputs);

}  // namespace graft::present

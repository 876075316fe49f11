// The types and shapes of tensors, in words and as JSON.
#pragma once

#include "present/json/values.hpp"
#include "present/text/table.hpp"
#include "runtime/engine.hpp"

namespace graft::present {

/// Returns a row for each tensor: "logits  f32 2x10".
[[nodiscard]] Table outputs_table(const runtime::TensorMap& tensors);
/// Returns [{"name", "type", "shape"}].
[[nodiscard]] Json outputs_json(const runtime::TensorMap& tensors);

}  // namespace graft::present

// Types and shapes of tensors, in words and as JSON.
#pragma once

#include "present/json/values.hpp"
#include "present/text/table.hpp"
#include "runtime/engine.hpp"

namespace graft::present {

/// "logits  f32 2x10": a row for each tensor.
[[nodiscard]] Table outputs_table(const runtime::TensorMap& tensors);
/// [{"name", "type", "shape"}].
[[nodiscard]] Json outputs_json(const runtime::TensorMap& tensors);

}  // namespace graft::present

// The result of `graft canary` as JSON.
#pragma once

#include <string>

#include "graft/toolkit/canary.hpp"
#include "present/json/values.hpp"

namespace graft::present {

/// Returns the command that runs the script in the folder on the machine with the GPU.
[[nodiscard]] std::string canary_command(const toolkit::CanaryResult& result);

/// Returns the number of compared tensors that are outputs of the model.
[[nodiscard]] std::size_t output_count(const toolkit::CanaryResult& result);

[[nodiscard]] Json to_json(const toolkit::CanaryResult& result);

}  // namespace graft::present

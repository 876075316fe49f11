// `graft verify --layers --json`.
#pragma once

#include <optional>
#include <string>

#include "present/json/values.hpp"
#include "present/text/verify_text.hpp"
#include "toolkit/compare_models.hpp"
#include "toolkit/reduced_case.hpp"

namespace graft::present {

/// Schema graft.verify.layers. `emulated` is the type's name, empty without one.
[[nodiscard]] Json layers_json(const toolkit::TensorComparison& compared, const VerifiedFiles& files,
                               const std::string& emulated, const std::optional<toolkit::ReducedFiles>& reduced,
                               const std::string& command);

}  // namespace graft::present

// The result of `graft verify --layers` as JSON.
#pragma once

#include <optional>
#include <string>

#include "present/json/values.hpp"
#include "present/text/verify_text.hpp"
#include "toolkit/compare_models.hpp"
#include "toolkit/reduced_case.hpp"

namespace graft::present {

/// Returns the comparison in the schema graft.verify.layers. `emulated` is the name of the emulated type, or empty.
/// `command` is the command that shows the difference with the `reduced` files.
[[nodiscard]] Json layers_json(const toolkit::TensorComparison& compared, const VerifiedFiles& files,
                               const std::string& emulated, const std::optional<toolkit::ReducedFiles>& reduced,
                               const std::string& command);

}  // namespace graft::present

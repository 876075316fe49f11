// The result of `graft verify --layers` as JSON.
#pragma once

#include <optional>
#include <string>

#include "present/json/values.hpp"
#include "toolkit/reduced_case.hpp"
#include "verify/localize/layers.hpp"

namespace graft::present {

/// Returns the report in the schema graft.verify.layers. `emulated` is the name of the emulated type, or empty.
/// `command` is the command that shows the difference with the `reduced` files.
[[nodiscard]] Json layers_json(const report::LayersReport& report, const std::string& emulated,
                               const std::optional<toolkit::ReducedFiles>& reduced, const std::string& command);

}  // namespace graft::present

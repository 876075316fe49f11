// The result of `graft verify` as JSON.
#pragma once

#include <optional>
#include <string>

#include "present/json/values.hpp"
#include "present/text/verify_text.hpp"
#include "toolkit/compare_models.hpp"

namespace graft::present {

/// Returns the noise floor as JSON, or null.
[[nodiscard]] Json to_json(const std::optional<verify::NoiseFloor>& floor);
[[nodiscard]] Json to_json(const std::optional<verify::SelectionDifference>& selection);
[[nodiscard]] Json to_json(const std::optional<verify::Dispute>& dispute);
[[nodiscard]] Json tolerance_json(const verify::Tolerance& tolerance, const std::string& why);
[[nodiscard]] Json ranges_json(const verify::InputRanges& ranges);

/// Returns the comparison in the schema graft.verify.
[[nodiscard]] Json verify_json(const toolkit::OutputComparison& compared, const VerifiedFiles& files);

}  // namespace graft::present

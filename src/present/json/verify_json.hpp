// `graft verify --json`.
#pragma once

#include <optional>
#include <string>

#include "present/json/values.hpp"
#include "present/text/verify_text.hpp"
#include "toolkit/compare_models.hpp"

namespace graft::present {

/// null without one.
[[nodiscard]] Json to_json(const std::optional<NoiseFloor>& floor);
[[nodiscard]] Json to_json(const std::optional<SelectionDifference>& selection);
[[nodiscard]] Json tolerance_json(const Tolerance& tolerance, const std::string& why);
[[nodiscard]] Json ranges_json(const InputRanges& ranges);

/// Schema graft.verify.
[[nodiscard]] Json verify_json(const toolkit::OutputComparison& compared, const VerifiedFiles& files);

}  // namespace graft::present

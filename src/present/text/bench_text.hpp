// `graft bench` in words and as JSON.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "present/json/values.hpp"
#include "present/text/listing.hpp"
#include "toolkit/bench.hpp"

namespace graft::present {

/// `result` is of python/graft/bench (its README lists the members).
[[nodiscard]] Listing operators_text(const nlohmann::json& result);
/// A warning for each case that failed or computes something else.
[[nodiscard]] std::vector<std::string> operators_warnings(const nlohmann::json& result);
[[nodiscard]] Json operators_json(nlohmann::json result);

/// "digits.onnx: 0.310 ms on the CPU, 3200.1 runs a second (...)".
[[nodiscard]] std::string model_times_text(const toolkit::ModelTimes& times, const std::string& model);
[[nodiscard]] Json model_times_json(const toolkit::ModelTimes& times, const std::string& model);

}  // namespace graft::present

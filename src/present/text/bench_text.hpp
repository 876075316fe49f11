// The result of `graft bench` in words and as JSON.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "graft/report/bench.hpp"
#include "present/json/values.hpp"
#include "present/text/listing.hpp"

namespace graft::present {

/// Returns the times of the operators. `result` is the JSON of python/graft/bench, whose README lists its members.
[[nodiscard]] Listing operators_text(const nlohmann::json& result);
/// Returns a warning for each case that failed, or whose result differs from the result of a peer.
[[nodiscard]] std::vector<std::string> operators_warnings(const nlohmann::json& result);
[[nodiscard]] Json operators_json(nlohmann::json result);

/// Returns the times of a model: "digits.onnx: 0.310 ms on the CPU, 3200.1 runs a second (...)".
[[nodiscard]] std::string model_times_text(const report::ModelTimes& times);

}  // namespace graft::present

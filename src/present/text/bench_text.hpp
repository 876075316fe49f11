// The result of `graft bench` in words.
#pragma once

#include <string>
#include <vector>

#include "graft/report/bench.hpp"
#include "present/text/listing.hpp"

namespace graft::present {

/// Returns the times of the operators.
[[nodiscard]] Listing operators_text(const report::OperatorTimes& times);
/// Returns a warning for each case that failed or whose result differs from those of the peers.
[[nodiscard]] std::vector<std::string> operators_warnings(const report::OperatorTimes& times);

/// Returns the times of a model: "digits.onnx: 0.310 ms on the CPU, 3200.1 runs a second (...)".
[[nodiscard]] std::string model_times_text(const report::ModelTimes& times);

}  // namespace graft::present

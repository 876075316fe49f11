// The page of `graft bench --report`: bar charts of Graft and its peers, all figures, and missed targets.
#pragma once

#include "graft/report/bench.hpp"
#include "present/html/report.hpp"

namespace graft::present {

/// Returns the page of timed operators.
[[nodiscard]] html::Report page_of_operators(const report::OperatorTimes& times);

/// Returns the page of the timed runs of a model.
[[nodiscard]] html::Report page_of_model(const report::ModelTimes& times);

}  // namespace graft::present

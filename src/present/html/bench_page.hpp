// The page of `graft bench --report`: bar charts beside what others take, every figure, what falls short.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "present/html/report.hpp"

namespace graft::present {

/// `result` is of python/graft/bench (its README lists the members).
[[nodiscard]] report::Report page_of_operators(const nlohmann::json& result);

/// Seconds of each run of a model.
[[nodiscard]] report::Report page_of_model(const std::string& model, const std::vector<double>& times,
                                           const std::vector<report::Fact>& inputs);

}  // namespace graft::present

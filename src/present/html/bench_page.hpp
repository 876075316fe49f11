// The page of `graft bench --report`: bar charts beside what others take, every figure, what falls short.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "present/html/report.hpp"
#include "toolkit/bench.hpp"

namespace graft::present {

/// `result` is of python/graft/bench (its README lists the members).
[[nodiscard]] report::Report page_of_operators(const nlohmann::json& result);

/// Of the runs of a model.
[[nodiscard]] report::Report page_of_model(const std::string& model, const toolkit::ModelTimes& times);

}  // namespace graft::present

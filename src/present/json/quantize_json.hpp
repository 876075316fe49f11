// The result of `graft quantize` as JSON.
#pragma once

#include <cstddef>
#include <string>

#include "graft/report/quantize.hpp"
#include "present/json/values.hpp"

namespace graft::present {

/// Returns the report in the schema graft.quantize.
[[nodiscard]] Json quantize_json(const report::QuantizeReport& report);
/// Returns the result of `graft quantize --write-cache` without an output model: the file and its number of scales.
[[nodiscard]] Json scales_json(const std::string& model, const std::string& cache, std::size_t scales);

}  // namespace graft::present

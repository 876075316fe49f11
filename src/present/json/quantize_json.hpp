// The result of `graft quantize` as JSON.
#pragma once

#include <cstddef>
#include <string>

#include "present/html/quantize_page.hpp"
#include "present/json/values.hpp"
#include "toolkit/quantize.hpp"

namespace graft::present {

/// Returns the result for f16 or bf16 in the schema graft.quantize. `verify` is the result of verify_command.
[[nodiscard]] Json types_json(const toolkit::TypesReport& report, const QuantizedFiles& files,
                              verify::Precision precision, bool has_data, const std::string& verify);
/// Returns the result for int8 or f8 in the schema graft.quantize.
[[nodiscard]] Json int8_json(const toolkit::Int8Report& report, const QuantizedFiles& files,
                             const quant::Int8Options& options, const std::string& verify);
/// Returns the result of `graft quantize --write-cache` without an output model: the file and its number of scales.
[[nodiscard]] Json scales_json(const std::string& model, const std::string& cache, std::size_t scales);

}  // namespace graft::present

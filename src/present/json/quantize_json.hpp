// `graft quantize --json`.
#pragma once

#include <cstddef>
#include <string>

#include "present/html/quantize_page.hpp"
#include "present/json/values.hpp"
#include "toolkit/quantize.hpp"

namespace graft::present {

/// Schema graft.quantize. `verify` is verify_command.
[[nodiscard]] Json types_json(const toolkit::TypesReport& report, const QuantizedFiles& files,
                              verify::Precision precision, bool has_data, const std::string& verify);
[[nodiscard]] Json int8_json(const toolkit::Int8Report& report, const QuantizedFiles& files,
                             const quant::Int8Options& options, const std::string& verify);
/// Of --write-cache alone.
[[nodiscard]] Json scales_json(const std::string& model, const std::string& cache, std::size_t scales);

}  // namespace graft::present

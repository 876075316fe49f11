// `graft quantize` in words.
#pragma once

#include <string>
#include <vector>

#include "present/text/listing.hpp"
#include "toolkit/quantize.hpp"

namespace graft::present {

/// "12 nodes in f16, 3 kept in f32, 4 casts, 1.2 MB of weights (2.4 MB before)".
[[nodiscard]] std::string types_summary(const toolkit::TypesReport& report, verify::Precision precision);
/// Nodes that stay in f32, or with `explain` all; notes; outputs.
[[nodiscard]] Listing types_text(const toolkit::TypesReport& report, verify::Precision precision, bool has_data,
                                 bool explain);
/// Where the limit is not met.
[[nodiscard]] std::string missed_types_text(const toolkit::TypesReport& report, const std::string& verify);

/// The command that repeats the check of a quantized model; empty where there is none: --data of a folder. `data` and
/// `inputs` are those of the command line.
[[nodiscard]] std::string verify_command(const toolkit::ValueCheck& check, const std::string& model,
                                         const std::string& output, const std::vector<std::string>& data,
                                         const std::vector<std::string>& inputs);

/// The same in int8 and f8.
[[nodiscard]] std::string int8_summary(const toolkit::Int8Report& report, const quant::Int8Options& options);
[[nodiscard]] Listing int8_text(const toolkit::Int8Report& report, bool has_metric, bool explain);
[[nodiscard]] std::string missed_int8_text(const toolkit::Int8Report& report, const std::string& verify);

}  // namespace graft::present

// The page of `graft quantize --report` with `--precision int8` or f8: the type of each node, every scale, and the
// trials of the search.
#pragma once

#include <string>

#include "present/html/quantize_page.hpp"
#include "quant/search/choose_int8.hpp"

namespace graft::present {

/// Returns the quantized value of a tensor's threshold: "127 steps" for int8, "448" for f8.
[[nodiscard]] std::string largest_text(quant::EightBits type);
/// Returns the type of a node: "int8", "f8", "fused", "f32", or `rest_precision`; "" for a node without f32 tensors.
[[nodiscard]] std::string type_name(const quant::ChosenInt8& chosen, const quant::Int8Node& node);
/// Returns how a node runs in int8 or f8, or why it does not.
[[nodiscard]] std::string explanation(const quant::ChosenInt8& chosen, const quant::Int8Node& node);

/// Returns the page of a network in int8 or f8. `options` are the options of choose_int8, and `summary` is the result
/// of int8_summary.
[[nodiscard]] html::Report int8_page(const quant::ChosenInt8& chosen, const QuantizedFiles& files,
                                     const quant::Int8Options& options, const std::string& summary);

}  // namespace graft::present

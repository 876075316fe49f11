// The page of `graft quantize --precision int8 --report`, and of f8: what each node does, every scale, and what the
// search tried.
#pragma once

#include <string>

#include "present/html/quantize_page.hpp"
#include "quant/search/choose_int8.hpp"

namespace graft::present {

/// What the threshold of a tensor becomes: "127 steps" or "448".
[[nodiscard]] std::string largest_text(quant::EightBits type);
/// "int8", "f8", "fused", "f32", or the type that the rest has; "" for a node without f32 tensors.
[[nodiscard]] std::string type_name(const quant::ChosenInt8& chosen, const quant::Int8Node& node);
/// What a node does in int8 or f8, or why it does not.
[[nodiscard]] std::string explanation(const quant::ChosenInt8& chosen, const quant::Int8Node& node);

/// Facts, kinds, graph, distributions, and sections. `options` are those that it was chosen with, `summary` is
/// int8_summary.
[[nodiscard]] report::Report int8_page(const quant::ChosenInt8& chosen, const QuantizedFiles& files,
                                       const quant::Int8Options& options, const std::string& summary);

}  // namespace graft::present

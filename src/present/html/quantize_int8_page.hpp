// The page of `graft quantize --precision int8 --report`: what each node does, every scale, and what the search tried.
#pragma once

#include <string>

#include "present/html/quantize_page.hpp"
#include "quant/choose_int8.hpp"

namespace graft::present {

/// "int8", "fused", "f32", or the type that the rest has; "" for a node without f32 tensors.
[[nodiscard]] std::string type_name(const quant::ChosenInt8& chosen, const quant::Int8Node& node);
/// What a node does in int8, or why it does not.
[[nodiscard]] std::string explanation(const quant::Int8Node& node);

/// Facts, kinds, graph, distributions, and sections. `options` are those that it was chosen with, `summary` is
/// int8_summary.
[[nodiscard]] report::Report int8_page(const quant::ChosenInt8& chosen, const QuantizedFiles& files,
                                       const quant::Int8Options& options, const std::string& summary);

}  // namespace graft::present

// The page of `graft quantize --report`: the typed network, colored by the types of its nodes and why they have them.
#pragma once

#include "present/html/report.hpp"
#include "quant/choose_types.hpp"

namespace graft::present {

/// "f16", "f32", or "" for a node without f32 tensors.
[[nodiscard]] std::string type_name(const ChosenNode& node, Precision precision);
/// Why it has that type: the reason in f32, what its numbers are otherwise.
[[nodiscard]] std::string explanation(const ChosenNode& node);
/// "SNR 62.1 dB, largest error 0.01, ...".
[[nodiscard]] std::string quality_text(const OutputFigures& output);

/// Adds kinds, graph, and tables of outputs and nodes.
void add_types(report::Report& page, const ChosenTypes& chosen, Precision precision);

}  // namespace graft::present

// The page of `graft quantize --report`: the typed network, colored by the types of its nodes and why they have them.
#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include "present/html/report.hpp"
#include "quant/search/choose_types.hpp"

namespace graft::present {

/// What was read and written.
struct QuantizedFiles {
  std::string model;
  std::string output;
  std::optional<std::filesystem::path> data_file = {};  ///< With the weights, where they are not in `output`.
};

/// Why it has that type: the reason in f32, what its numbers are otherwise.
[[nodiscard]] std::string explanation(const quant::ChosenNode& node);
/// "SNR 62.1 dB, largest error 0.01, ...".
[[nodiscard]] std::string quality_text(const verify::OutputFigures& output);

/// What the page of a typed model says first: what was written.
[[nodiscard]] report::Report new_quantize_page(const QuantizedFiles& files, const std::string& summary);

/// Kinds, graph, and tables of outputs and nodes. `summary` is types_summary.
[[nodiscard]] report::Report types_page(const quant::ChosenTypes& chosen, const QuantizedFiles& files,
                                        verify::Precision precision, bool has_data, const std::string& summary);

}  // namespace graft::present

// The page of `graft quantize --report`: the typed network, with the type of each node and the reason.
#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include "present/html/report.hpp"
#include "quant/search/choose_types.hpp"

namespace graft::present {

/// The files that `graft quantize` read and wrote.
struct QuantizedFiles {
  std::string model;
  std::string output;
  std::optional<std::filesystem::path> data_file = {};  ///< The weights, if they are not in `output`.
};

/// Returns why a node has its type. For a node in f16 or bf16, these are the range of its first output and the effect
/// of rounding.
[[nodiscard]] std::string explanation(const quant::ChosenNode& node);
/// Returns the figures of an output: "SNR 62.1 dB, largest error 0.01, ...".
[[nodiscard]] std::string quality_text(const verify::OutputFigures& output);

/// Returns a page that begins with the files that were read and written, and with `summary`.
[[nodiscard]] html::Report new_quantize_page(const QuantizedFiles& files, const std::string& summary);

/// Returns the page of a network in f16 or bf16. `summary` is the result of types_summary.
[[nodiscard]] html::Report types_page(const quant::ChosenTypes& chosen, const QuantizedFiles& files,
                                      verify::Precision precision, bool has_data, const std::string& summary);

}  // namespace graft::present

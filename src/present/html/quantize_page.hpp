// The page of `graft quantize --report`: the typed network, with the type of each node and the reason.
#pragma once

#include "graft/report/quantize.hpp"
#include "present/html/report.hpp"

namespace graft::present {

/// Returns a page that begins with the files that were read and written, and with the summary.
[[nodiscard]] html::Report new_quantize_page(const report::QuantizeReport& report);

/// Returns the page of a network in f16 or bf16.
[[nodiscard]] html::Report types_page(const report::QuantizeReport& report);
/// Returns the page of a network in int8 or f8: the type of each node, every scale, and the trials of the search.
[[nodiscard]] html::Report int8_page(const report::QuantizeReport& report);

[[nodiscard]] inline html::Report quantize_page(const report::QuantizeReport& report) {
  return report.has_8_bits() ? int8_page(report) : types_page(report);
}

}  // namespace graft::present

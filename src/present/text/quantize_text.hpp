// The result of `graft quantize` in words.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "graft/report/quantize.hpp"
#include "present/text/listing.hpp"

namespace graft::present {

/// Returns a summary: "12 nodes in f16, 3 kept in f32, 4 casts, 1.2 MB of weights (2.4 MB before)"; for int8 and f8 the
/// number of quantized, fused and kept nodes, of rounded tensors, and the size of the weights.
[[nodiscard]] std::string quantize_summary(const report::QuantizeReport& report);
/// Returns the nodes without the requested type, or all nodes and tensors if `explain`, followed by notes, outputs and
/// the user's metric.
[[nodiscard]] Listing quantize_text(const report::QuantizeReport& report, bool explain);
/// Returns why the limit is not met or the check does not accept the model.
[[nodiscard]] std::string missed_limit_text(const report::QuantizeReport& report);

/// The number of changes that one improvement of --improve made to the network.
struct AppliedImprovement {
  const char* done;  ///< The participle for the change, for example "equalized".
  std::size_t count = 0;
  const char* noun;  ///< The singular of what is counted: "pair", "tensor" or "layer".
};

/// Returns the improvements that changed the network.
[[nodiscard]] std::vector<AppliedImprovement> applied_improvements(const report::AppliedImprovements& improvements);

/// Returns the figures of an output: "SNR 62.1 dB, largest error 0.01, ...".
[[nodiscard]] std::string quality_text(const report::OutputFigures& output);
/// Returns the name of the metric: "the metric" of the caller, or "top-1 agreement of logits with f32".
[[nodiscard]] std::string metric_name(const report::QuantizeReport& report);
/// Returns the quantized value of a tensor's threshold: "127 steps" for int8, "448" for f8.
[[nodiscard]] std::string largest_text(report::Precision precision);

}  // namespace graft::present

// The result of `graft quantize` in words.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "present/text/listing.hpp"
#include "toolkit/quantize.hpp"

namespace graft::present {

/// Returns a summary: "12 nodes in f16, 3 kept in f32, 4 casts, 1.2 MB of weights (2.4 MB before)".
[[nodiscard]] std::string types_summary(const toolkit::TypesReport& report, verify::Precision precision);
/// Returns the nodes that stay in f32, or all nodes if `explain`, followed by notes and outputs.
[[nodiscard]] Listing types_text(const toolkit::TypesReport& report, verify::Precision precision, bool has_data,
                                 bool explain);
/// Returns why the limit is not met or the check does not accept the model. `verify` is the result of verify_command.
[[nodiscard]] std::string missed_types_text(const toolkit::TypesReport& report, const std::string& verify);

/// Returns the command that repeats the check of a quantized model; empty if --data names a folder, for which there is
/// no such command. `data` and `inputs` are the values of --data and --input.
[[nodiscard]] std::string verify_command(const toolkit::ValueCheck& check, const std::string& model,
                                         const std::string& output, const std::vector<std::string>& data,
                                         const std::vector<std::string>& inputs);

/// The number of places where an improvement of --improve changed the network.
struct AppliedImprovement {
  const char* name;  ///< "equalize", "smooth", "round" or "bias", as in --improve.
  const char* done;  ///< "equalized"
  std::size_t count = 0;
  const char* noun;  ///< "pair", "tensor" or "layer"
};

/// Returns the improvements that changed the network.
[[nodiscard]] std::vector<AppliedImprovement> applied_improvements(const quant::ChosenInt8& chosen);

/// Returns a summary for int8 or f8: the number of quantized, fused and kept nodes, and the size of the weights.
[[nodiscard]] std::string int8_summary(const toolkit::Int8Report& report, const quant::Int8Options& options);
/// Returns the nodes that are not quantized, or all nodes and tensors if `explain`, followed by notes, outputs and, if
/// `has_metric`, the metric.
[[nodiscard]] Listing int8_text(const toolkit::Int8Report& report, bool has_metric, bool explain);
/// Returns why the limit is not met or the check does not accept the model, as missed_types_text does.
[[nodiscard]] std::string missed_int8_text(const toolkit::Int8Report& report, const std::string& verify);

}  // namespace graft::present

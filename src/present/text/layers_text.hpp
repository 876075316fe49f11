// The result of `graft verify --layers` in words.
#pragma once

#include <string>
#include <vector>

#include "graft/report/layers.hpp"
#include "present/text/listing.hpp"

namespace graft::present {

/// Returns the first divergence, then a row for each tensor. If there are many tensors, only those near the divergence
/// and the outputs have a row, unless `verbose`.
[[nodiscard]] Listing layers_text(const report::LayersReport& report, bool verbose);

/// Returns warnings about comparisons that prove little: a large noise floor, an output of which nothing was compared,
/// synthetic inputs for a quantized candidate, parts of the network that the runs did not reach, operators without
/// Graft's kernels, or inner tensors that differ although the outputs agree.
[[nodiscard]] std::vector<std::string> layers_warnings(const report::LayersReport& report);

/// Returns the tensor, its node and the error: "'features', by node 'conv' (Conv): 1.01 times the reference". Empty if
/// there is no first divergence.
[[nodiscard]] std::string first_divergence_text(const report::LayersReport& report);

/// Returns a warning if inner tensors differ although the outputs agree; otherwise empty.
[[nodiscard]] std::string hidden_difference_text(const report::LayersReport& report);

/// Returns the differences between the nodes of both models, at most the first 6 and the number of further ones; empty
/// if the nodes cannot be compared.
[[nodiscard]] std::vector<std::string> difference_texts(const report::Divergence& first);

/// Returns the signal-to-noise ratio: "62.1 dB", or "-" without one, for example because nothing differs.
[[nodiscard]] std::string decibels_text(const report::ComparedLayer& layer);

/// Returns the command that reproduces the difference or the failure with the reduced files, followed by `options`.
[[nodiscard]] std::string reduced_command(const report::ReducedFiles& files, const std::string& options);

}  // namespace graft::present

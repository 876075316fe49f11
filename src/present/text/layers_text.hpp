// `graft verify --layers` in words.
#pragma once

#include <string>
#include <vector>

#include "present/text/listing.hpp"
#include "toolkit/compare_models.hpp"
#include "toolkit/reduced_case.hpp"
#include "verify/localize/layers.hpp"

namespace graft::present {

/// The first divergence, then a row for each tensor; of many, those round it, unless `verbose`.
[[nodiscard]] Listing layers_text(const verify::LayerReport& report, bool verbose);

/// Where hardly anything would be called a difference, nothing was compared, or outputs agree and tensors inside do
/// not.
[[nodiscard]] std::vector<std::string> layers_warnings(const toolkit::TensorComparison& compared, bool has_data);

/// The node and what it does: "'features', by node 'conv' (Conv): 1.01 times the reference". Empty where there is none.
[[nodiscard]] std::string first_divergence_text(const verify::LayerReport& report);

/// What is to be said where the outputs agree and tensors inside do not; empty otherwise.
[[nodiscard]] std::string hidden_difference_text(const verify::LayerReport& report);

/// What the nodes have that is another, of many the first; empty where that is not known.
[[nodiscard]] std::vector<std::string> difference_texts(const verify::Divergence& first);

/// "62.1 dB", or "-" where nothing differs.
[[nodiscard]] std::string decibels_text(const verify::LayerComparison& layer);

/// Shows the difference, or the failure, again. `options` are added.
[[nodiscard]] std::string reduced_command(const toolkit::ReducedFiles& files, const std::string& options);

}  // namespace graft::present

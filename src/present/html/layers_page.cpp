// Shows the tensors of all layers on the page of a comparison.
#include "present/html/layers_page.hpp"

#include <fmt/format.h>

#include "core/comparison_text.hpp"
#include "present/text/layers_text.hpp"
#include "present/text/verify_text.hpp"

namespace graft::present {

std::vector<ComparedTensor> tensors_of(const report::LayersReport& report) {
  std::vector<ComparedTensor> tensors;
  for (std::size_t i = 0; i < report.layers.size(); ++i) {
    const report::ComparedLayer& layer = report.layers[i];
    ComparedTensor& tensor = tensors.emplace_back();
    tensor.reference = layer.reference.name;
    tensor.candidate = layer.candidate.name;
    tensor.type = layer.candidate.type;
    tensor.tolerance = layer.tolerance;
    tensor.difference = layer.difference;
    tensor.floor = layer.floor;
    tensor.is_equal = layer.equal();
    tensor.diagnosis = layer.diagnosis;
    tensor.not_compared = layer.not_compared;
    tensor.is_first = report.first && report.first->layer == i;
    tensor.is_reordered = layer.layout.has_value();
    if (tensor.is_first) tensor.diagnosis = report.first->why;
    tensor.snr_db = layer.error.snr_db;
    tensor.facts = {{"SNR", decibels_text(layer)},
                    {"range in the reference", range_text(layer.reference_range)},
                    {"range in the candidate", range_text(layer.candidate_range)}};
    const std::string rounding = layer.rounding ? rounding_text(*layer.rounding) : "";
    if (!rounding.empty()) tensor.facts.push_back({"in the emulated type", rounding});
    if (layer.snr_lost_db) tensor.facts.push_back({"loss of SNR", fmt::format("{:.1f} dB", *layer.snr_lost_db)});
    if (layer.local) tensor.facts.push_back({"with the inputs of the reference", difference_text(*layer.local)});
    if (tensor.is_first) {
      for (const std::string& text : difference_texts(*report.first)) tensor.facts.push_back({"differs in", text});
    }
    if (!tensor.is_first && !layer.is_output) continue;
    for (std::size_t bin = 0; bin < report::ErrorHistogram::names.size(); ++bin) {
      const auto count = static_cast<std::size_t>(layer.error.histogram.counts.at(bin));
      tensor.errors.push_back({report::ErrorHistogram::names.at(bin), count, {}});
    }
    while (!tensor.errors.empty() && tensor.errors.back().count == 0) tensor.errors.pop_back();
  }
  return tensors;
}

html::Report layers_page(const toolkit::LayersResult& result) {
  html::Report page = new_comparison_page(result, verdict_text(result, result.verdict()));
  if (result.first) page.summary.push_back({"first divergence", first_divergence_text(result)});
  if (const std::string hidden = hidden_difference_text(result); !hidden.empty()) {
    page.summary.push_back({"internal tensors", hidden});
  }
  add_comparison(page, result.candidate, tensors_of(result), result.problems);
  return page;
}

}  // namespace graft::present

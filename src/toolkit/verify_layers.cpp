// Comparison of two models by all their tensors.
#include "graft/toolkit/verify_layers.hpp"

#include <utility>

#include "toolkit/access.hpp"
#include "toolkit/precisions.hpp"
#include "toolkit/tensors.hpp"
#include "toolkit/verify_options.hpp"

namespace graft::toolkit {
namespace {

ComparedTensor compared_of(verify::LayerComparison&& layer) {
  ComparedTensor tensor;
  tensor.reference = {.name = std::move(layer.reference), .type = std::move(layer.reference_type)};
  tensor.candidate = {.name = std::move(layer.candidate), .type = std::move(layer.candidate_type)};
  tensor.reference_node = std::move(layer.reference_node);
  tensor.candidate_node = std::move(layer.candidate_node);
  tensor.is_output = layer.is_output;
  tensor.verdict = verdict_of(layer.verdict());
  tensor.not_compared = std::move(layer.not_compared);
  tensor.mismatched = layer.difference.mismatched;
  tensor.largest_absolute = layer.difference.worst_absolute();
  tensor.largest_relative = layer.difference.worst_relative();
  tensor.snr_db = layer.error.snr_db;
  tensor.diagnosis = std::move(layer.diagnosis);
  return tensor;
}

Divergence divergence_of(graft::verify::Divergence&& found, const verify::LayerComparison& layer) {
  runtime::TensorMap inputs;
  for (auto& [name, tensor] : found.reduced.inputs) {
    if (to_dtype(tensor.type)) inputs.emplace(name, std::move(tensor));
  }
  return {.tensor = found.layer,
          .why = std::move(found.why),
          .reference_nodes = layer.reference_nodes,
          .candidate_nodes = layer.candidate_nodes,
          .differences = std::move(found.differences),
          .reference = ModelAccess::make(std::move(found.reduced.reference)),
          .candidate = ModelAccess::make(std::move(found.reduced.candidate)),
          .inputs = to_public(inputs, "input")};
}

}  // namespace

LayersResult verify_layers(const Model& reference, const Model& candidate, const VerifyOptions& options,
                           std::optional<Precision> emulated) {
  CompareOptions inner = compare_options(options, model_of(reference), model_of(candidate));
  if (emulated) inner.emulated = precision_of(*emulated);
  verify::LayerReport report =
      compare_tensors(model_of(reference), model_of(candidate), std::move(inner), options.watch).report;
  LayersResult result;
  result.verdict = verdict_of(report.verdict());
  result.nan_begins = report.nan_begins;
  result.problems = std::move(report.problems);
  result.runs = report.runs;
  if (report.failure) {
    result.failure = {.node = std::move(report.failure->node),
                      .message = std::move(report.failure->message),
                      .nodes = std::move(report.failure->nodes)};
  }
  if (report.first) {
    const verify::LayerComparison& layer = report.layers[report.first->layer];
    result.first = divergence_of(std::move(*report.first), layer);
  }
  for (verify::LayerComparison& layer : report.layers) result.tensors.push_back(compared_of(std::move(layer)));
  return result;
}

}  // namespace graft::toolkit

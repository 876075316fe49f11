// `verify_layers`: compares two models by all their tensors.
#include "graft/toolkit/verify_layers.hpp"

#include <utility>

#include "toolkit/access.hpp"
#include "toolkit/precisions.hpp"
#include "toolkit/tensors.hpp"
#include "toolkit/verify_options.hpp"

namespace graft::toolkit {
namespace {

ComparedTensor compared_of(const report::ComparedLayer& layer) {
  ComparedTensor tensor;
  tensor.reference = layer.reference;
  tensor.candidate = layer.candidate;
  tensor.reference_node = layer.reference_node;
  tensor.candidate_node = layer.candidate_node;
  tensor.is_output = layer.is_output;
  tensor.verdict = layer.verdict();
  tensor.not_compared = layer.not_compared;
  tensor.mismatched = layer.difference.mismatched;
  tensor.largest_absolute = layer.difference.worst_absolute();
  tensor.largest_relative = layer.difference.worst_relative();
  tensor.snr_db = layer.error.snr_db;
  tensor.diagnosis = layer.diagnosis;
  return tensor;
}

Divergence divergence_of(const report::Divergence& found, const verify::ReducedCase& reduced) {
  runtime::TensorMap inputs;
  for (const auto& [name, tensor] : reduced.inputs) {
    if (is_tensor_type(tensor.type)) inputs.emplace(name, tensor);
  }
  return {.tensor = found.layer,
          .why = found.why,
          .reference_nodes = found.reference_nodes,
          .candidate_nodes = found.candidate_nodes,
          .differences = found.differences,
          .reference = ModelAccess::make(reduced.reference.clone()),
          .candidate = ModelAccess::make(reduced.candidate.clone()),
          .inputs = to_public(inputs, "input")};
}

}  // namespace

LayersResult verify_layers(const Model& reference, const Model& candidate, const VerifyOptions& options,
                           std::optional<Precision> emulated) {
  CompareOptions inner = compare_options(options, model_of(reference), model_of(candidate));
  if (emulated) inner.emulated = precision_of(*emulated);
  const auto precision = inner.emulated;
  verify::LayerReport report =
      compare_tensors(model_of(reference), model_of(candidate), std::move(inner), options.watch);
  LayersResult result;
  result.verdict = report.verdict();
  result.nan_begins = report.nan_begins;
  result.problems = report.problems;
  result.runs = report.runs;
  result.ran_in = report.ran_in;
  result.left_out = report.left_out;
  result.unreached = report.unreached;
  if (report.dispute) result.dispute = report.dispute->text();
  result.without_own_kernels = report.without_own_kernels;
  if (report.failure) {
    result.failure = {.node = report.failure->node, .message = report.failure->message, .nodes = report.failure->nodes};
  }
  if (report.first) result.first = divergence_of(*report.first, *report.reduced);
  for (const report::ComparedLayer& layer : report.layers) result.tensors.push_back(compared_of(layer));
  result.details = std::make_shared<const LayerVerification>(
      LayerVerification{.report = std::move(report), .candidate = candidate, .emulated = precision});
  return result;
}

}  // namespace graft::toolkit

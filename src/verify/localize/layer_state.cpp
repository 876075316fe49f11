// Sets up the state that the steps of compare_layers share.
#include "verify/localize/layer_state.hpp"

#include <utility>

namespace graft::verify {

LayerState::LayerState(const runtime::Engine& engine, const onnx::Model& reference_model,
                       const onnx::Model& candidate_model, const VerifyOptions& given,
                       std::optional<Precision> emulated_type, Scales int8_scales)
    : options(given),
      emulated(emulated_type),
      scales(std::move(int8_scales)),
      reference(engine, reference_model, given.reference_kernels, given.threads),
      candidate(engine, candidate_model, given.candidate_kernels, given.threads),
      matcher(reference.model(), candidate.model()),
      quantized(emulated_type == Precision::int8 || (quantizes(candidate_model) && !quantizes(reference_model))) {}

void LayerState::tell(const std::string& what, std::size_t done, std::size_t total) const {
  if (options.progress) options.progress(what, done, total);
}

Tolerance LayerState::usual_tolerance(const LayerRow& row, onnx::ElementType left, onnx::ElementType right) const {
  return layer_tolerance(rounding_type(reference_narrow, *row.match.reference, left),
                         rounding_type(candidate_narrow, *row.match.candidate, right), quantized,
                         is_quantized(*row.match.reference) || is_quantized(*row.match.candidate));
}

bool LayerState::may_have_floor(const Tolerance& tolerance) const {
  return !options.relative && !options.absolute && !tolerance.snr_db && !emulated;
}

bool LayerState::may_judge_choice(const LayerRow& row) const {
  return row.choice && !refused_by_reference.contains(row.choice->choice.scores);
}

}  // namespace graft::verify

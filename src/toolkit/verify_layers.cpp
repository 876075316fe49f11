// `verify_layers`: compares two models by all their tensors.
#include "graft/toolkit/verify_layers.hpp"

#include <utility>

#include "toolkit/access.hpp"
#include "toolkit/precisions.hpp"
#include "toolkit/tensors.hpp"
#include "toolkit/verify_options.hpp"

namespace graft::toolkit {
namespace {

ReducedModels public_models(verify::ReducedCase reduced) {
  std::erase_if(reduced.inputs, [](const auto& input) { return !is_tensor_type(input.second.type); });
  return {.reference = ModelAccess::make(std::move(reduced.reference)),
          .candidate = ModelAccess::make(std::move(reduced.candidate)),
          .inputs = to_public(reduced.inputs, "input")};
}

}  // namespace

LayersResult verify_layers(const Model& reference, const Model& candidate, const VerifyOptions& options,
                           std::optional<Precision> emulated) {
  CompareOptions inner = compare_options(options, model_of(reference), model_of(candidate));
  if (emulated) inner.emulated = precision_of(*emulated);
  verify::LayerReport found =
      compare_tensors(model_of(reference), model_of(candidate), std::move(inner), options.watch);
  std::optional<ReducedModels> reduced;
  if (found.first && found.reduced) reduced = public_models(std::move(*found.reduced));
  return {static_cast<report::LayersReport&&>(found), candidate, std::move(reduced)};
}

}  // namespace graft::toolkit

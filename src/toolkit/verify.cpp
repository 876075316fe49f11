// `verify`: compares two models by their outputs.
#include "graft/toolkit/verify.hpp"

#include "toolkit/access.hpp"
#include "toolkit/compare_models.hpp"

namespace graft::toolkit {

VerifyResult verify(const Model& reference, const Model& candidate, const VerifyOptions& options) {
  return {compare_outputs(model_of(reference), model_of(candidate), compare_options(options), options.watch),
          candidate};
}

}  // namespace graft::toolkit

// Copies the options that VerifyOptions and LayerOptions have in common, and sets the facts that their reports share.
#pragma once

#include "graft/report/verify.hpp"
#include "onnx/model.hpp"
#include "verify/compare/compare.hpp"

namespace graft::verify {

/// Copies all common options except `seeds`, whose defaults differ. The structs have no common base, because callers
/// use designated initializers, which do not work with a base.
template <class From, class To>
void copy_shared_options(const From& from, To& to) {
  to.data = from.data;
  to.dims = from.dims;
  to.shapes = from.shapes;
  to.ranges = from.ranges;
  to.large_integers = from.large_integers;
  to.relative = from.relative;
  to.absolute = from.absolute;
  to.snr_db = from.snr_db;
  to.reference_kernels = from.reference_kernels;
  to.candidate_kernels = from.candidate_kernels;
  to.threads = from.threads;
}

/// Sets the files of a report, whether the caller gave inputs, and whether only the candidate is quantized.
template <class Options>
void describe_comparison(report::ComparedModels& report, const onnx::Model& reference, const onnx::Model& candidate,
                         const Options& options) {
  report.reference_file = reference.source;
  report.candidate_file = candidate.source;
  report.has_data = !options.data.empty();
  report.is_quantized_candidate = quantizes(candidate) && !quantizes(reference);
}

}  // namespace graft::verify

// Copies the options that VerifyOptions and LayerOptions have in common.
#pragma once

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

}  // namespace graft::verify

// Folds tensors without elements into constants.
#pragma once

#include <openvino/core/model.hpp>

namespace graft::runtime {

/// Replaces each result whose fixed shape has no elements with a constant. Some kernels of OpenVINO 2026.4, for example
/// Gather and GatherND, divide by their number of elements, which ends the process.
void leave_out_what_has_no_elements(ov::Model& model);

}  // namespace graft::runtime

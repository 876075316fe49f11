// Leaves out what would compute nothing.
#pragma once

#include <openvino/core/model.hpp>

namespace graft::runtime {

/// A result whose fixed shape has no elements becomes a constant: some kernels of OpenVINO 2026.4, as those of Gather
/// and GatherND, divide by the number of their elements, and the process ends.
void leave_out_what_has_no_elements(ov::Model& model);

}  // namespace graft::runtime

// From a prepared model to OpenVINO's own.
#pragma once

#include <memory>

#include "runtime/openvino/prepare.hpp"

namespace ov {
class Model;
}

namespace graft::runtime {

/// Parameters and results are in the order of the model's inputs and outputs. Throws Error naming file and node, in
/// OpenVINO's words.
[[nodiscard]] std::shared_ptr<ov::Model> read_into_openvino(const PreparedModel& prepared);

}  // namespace graft::runtime

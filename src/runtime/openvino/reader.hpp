// Reads a prepared model into OpenVINO.
#pragma once

#include <memory>

#include "runtime/openvino/prepare.hpp"

namespace ov {
class Model;
}

namespace graft::runtime {

/// Returns OpenVINO's model, with parameters and results in the order of the model's inputs and outputs. Throws Error
/// naming file and node, with OpenVINO's message.
[[nodiscard]] std::shared_ptr<ov::Model> read_into_openvino(const PreparedModel& prepared);

}  // namespace graft::runtime

// Converts values of a model to the ports of the public interface.
#pragma once

#include <vector>

#include "graft/toolkit/model.hpp"
#include "onnx/model.hpp"

namespace graft::toolkit {

[[nodiscard]] std::vector<Port> ports_of(const std::vector<const graft::onnx::Value*>& values);

}  // namespace graft::toolkit

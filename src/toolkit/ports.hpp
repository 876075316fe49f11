// Converts values of a model to the ports of the public interface.
#pragma once

#include <vector>

#include "graft/report/model.hpp"
#include "graft/toolkit/model.hpp"
#include "onnx/model.hpp"

namespace graft::toolkit {

[[nodiscard]] std::vector<Port> ports_of(const std::vector<const graft::onnx::Value*>& values);
/// Returns descriptions of inputs or outputs of a model for reports: their names, types and shapes, with the names of
/// dynamic dimensions.
[[nodiscard]] std::vector<report::ModelPort> model_ports(const std::vector<graft::onnx::Value*>& values);

}  // namespace graft::toolkit

// Isolates nodes at which one of OpenVINO's transformations fails, so that the model compiles.
#pragma once

#include <openvino/core/model.hpp>
#include <string>
#include <string_view>

namespace graft::runtime {

/// Returns the type of the node at which a transformation of OpenVINO threw, for example "Reshape", extracted from the
/// exception's message; an empty string if the exception did not come from a transformation.
[[nodiscard]] std::string failed_transformation_root(std::string_view message);

/// Inserts a PassThroughNode, which no pattern of a transformation matches, before each floating-point input of the
/// nodes of a type, constants excepted. Integer inputs, from which shapes are computed, do not change. Returns whether
/// a node was inserted.
bool isolate_nodes(ov::Model& model, std::string_view type);

}  // namespace graft::runtime

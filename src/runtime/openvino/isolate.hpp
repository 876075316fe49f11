// What lets a model compile at which one of OpenVINO's transformations fails.
#pragma once

#include <openvino/core/model.hpp>
#include <set>
#include <string>
#include <string_view>

namespace graft::runtime {

/// The type of the node at which a transformation of OpenVINO threw, "Reshape", from the exception's message; empty
/// where it was no transformation.
[[nodiscard]] std::string failed_transformation_root(std::string_view message);

/// Puts a node that passes its input through, and that no pattern of a transformation matches, before each
/// floating-point input of the nodes of a type. Integers, which shapes are made of, stay. Returns whether there was
/// one.
bool isolate_nodes(ov::Model& model, std::string_view type);

}  // namespace graft::runtime

// Finds nodes of two models that compute something else from the same tensors.
#pragma once

#include <string>
#include <vector>

#include "onnx/model.hpp"

namespace graft::verify {

/// Returns a clause for each node of the candidate that differs from the node of the reference with the same input and
/// output names, in its operator or an attribute: "node 'sel' (NonMaxSuppression): center_point_box is 0 in the
/// reference and 1 in the candidate". Only nodes of ai.onnx in the main graphs, with equal opsets, are compared.
///
/// An absent attribute counts as its default, and axes are counted from the front. Attributes that have no effect on
/// the result are ignored, and so are attributes that can be written in several ways: pads if auto_pad is set, real
/// types of a Cast, and an attribute that only one node has and for which ONNX has no default.
[[nodiscard]] std::vector<std::string> find_changed_nodes(const onnx::Model& reference, const onnx::Model& candidate);

}  // namespace graft::verify

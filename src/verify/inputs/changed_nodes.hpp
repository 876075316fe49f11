// Finds nodes of two models that compute something else from the same tensors.
#pragma once

#include <string>
#include <vector>

#include "onnx/model.hpp"

namespace graft::verify {

/// Returns a clause for each node of the candidate that reads and writes tensors of the same names as a node of the
/// reference in the same operator set, and has another operator or another attribute: "node 'sel' (NonMaxSuppression):
/// center_point_box is 0 in the reference and 1 in the candidate". Only operators of ai.onnx in the main graphs count.
///
/// Defaults count as attributes, and an axis counts from the front. Left out are attributes that have no effect on the
/// result, and those that can be written in several ways: pads and auto_pad where auto_pad is set, the real types of
/// a Cast, and an attribute that one node has and for which ONNX has no default.
[[nodiscard]] std::vector<std::string> find_changed_nodes(const onnx::Model& reference, const onnx::Model& candidate);

}  // namespace graft::verify

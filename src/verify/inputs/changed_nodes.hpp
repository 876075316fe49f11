// Finds nodes of two models that compute something else from the same tensors.
#pragma once

#include <string>
#include <vector>

#include "onnx/model.hpp"

namespace graft::verify {

/// Returns a clause for each node of the candidate that reads and writes tensors of the same names as a node of the
/// reference with the same opset, and that has another operator or attribute: "node 'sel' (NonMaxSuppression):
/// center_point_box is 0 in the reference and 1 in the candidate". Only operators of ai.onnx in the main graphs are
/// compared.
///
/// An absent attribute counts as its default, and an axis is counted from the front. Ignored are attributes that have
/// no effect on the result, and attributes that can be written in several ways: pads and auto_pad if auto_pad is set,
/// the real types of a Cast, and an attribute that one node has and for which ONNX has no default.
[[nodiscard]] std::vector<std::string> find_changed_nodes(const onnx::Model& reference, const onnx::Model& candidate);

}  // namespace graft::verify

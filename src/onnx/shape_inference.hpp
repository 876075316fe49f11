// Infers the element types and the symbolic shapes of all values.
#pragma once

#include <cstddef>
#include <functional>
#include <map>
#include <string>

#include "onnx/model.hpp"

namespace graft::onnx {

/// The highest rank of a tensor, which is NumPy's limit. Files with a higher rank are refused. TensorRT's limit is 8.
inline constexpr std::size_t highest_rank = 64;

/// Sets Value::type and Value::shape where they follow from the inputs and from constants, also inside subgraphs.
/// Elements of small integer tensors are computed too, where possible (Shape, Gather, Concat, Reshape), because they
/// may determine shapes. Graft's operators infer their own outputs; calls of other functions are inferred through their
/// bodies. A shape that the file declares for an inner value or an output is only used if nothing can be inferred,
/// because it may be out of date. Types and shapes that cannot be inferred stay unknown. Throws Error naming the node
/// whose inputs contradict each other, or whose output is declared with another element type. Returns the number of
/// values in the main graph whose type or rank is still unknown.
std::size_t infer_shapes(Model& model);

/// Infers types and shapes as infer_shapes(model) does, after replacing the declared shape of each input in
/// `input_shapes`, and returns the number of values whose type or rank is unknown. The shapes, but not the types, that
/// the file declares for outputs of nodes are removed first. Throws Error for a name that is not an input, and for a
/// shape that contradicts the declared one.
std::size_t infer_shapes(Model& model, const std::map<std::string, Shape, std::less<>>& input_shapes);

}  // namespace graft::onnx

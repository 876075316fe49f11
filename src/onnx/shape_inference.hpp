// Element types and symbolic shapes of all values.
#pragma once

#include <cstddef>
#include <functional>
#include <map>
#include <string>

#include "onnx/model.hpp"

namespace graft::onnx {

/// Of a tensor, NumPy's limit; a file with more is refused. TensorRT takes 8.
inline constexpr std::size_t highest_rank = 64;

/// Fills Value::type and Value::shape where they follow from the inputs' and from constants, also inside sub-graphs.
/// Small integer tensors are followed by value (Shape, Gather, Concat, Reshape). Graft's operators infer their own;
/// calls of other functions are inferred through their bodies. What the file declares of inner values and of outputs
/// counts only where nothing can be inferred, for it may be older than the inputs. What cannot be inferred stays
/// unknown. Throws Error naming the node whose inputs contradict each other, or whose output is declared of another
/// element type. Returns the number of values in the main graph whose type or rank is still unknown.
std::size_t infer_shapes(Model& model);

/// The same from given input shapes: each replaces the declared shape of that input, and all other shapes and types
/// that the file declares are forgotten first. Throws Error for a name that is no input or a shape that contradicts it.
std::size_t infer_shapes(Model& model, const std::map<std::string, Shape, std::less<>>& input_shapes);

}  // namespace graft::onnx

// Infers the shapes of a network again after a rule changed an input.
#pragma once

#include "onnx/model.hpp"

namespace graft::rules {

/// Infers all shapes and types again from the inputs of the model. Types that cannot be inferred keep the value in the
/// file. Throws Error if the shapes are inconsistent.
void infer_again(onnx::Model& model);

}  // namespace graft::rules

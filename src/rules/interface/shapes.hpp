// Infers the shapes of a network again after a rule changed an input.
#pragma once

#include "onnx/model.hpp"

namespace graft::rules {

/// Infers shapes and types again from the inputs. Types that only the file declares are kept. Throws Error if the
/// shapes do not fit together.
void infer_again(onnx::Model& model);

}  // namespace graft::rules

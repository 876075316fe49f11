// What messages of all importers say of names that a network does not have.
#pragma once

#include <string>
#include <vector>

#include "onnx/model.hpp"

namespace graft {

/// "; did you mean conv1?", or else the names that hold this one as a part; nothing where none is near.
[[nodiscard]] std::string did_you_mean(const std::string& name, std::vector<std::string> names);

/// "give the shapes of the inputs with ImportOptions::shapes": what a size that is not known comes to.
[[nodiscard]] std::string give_shapes();

/// "its inputs are image [1, 3, 8, 8]".
[[nodiscard]] std::string inputs_text(const onnx::Graph& graph);

}  // namespace graft

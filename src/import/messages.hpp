// Phrases that the messages of all importers share.
#pragma once

#include <string>
#include <vector>

#include "onnx/model.hpp"

namespace graft {

/// Returns a suggestion such as "; did you mean conv1?". It lists those of `names` that contain `name` between slashes,
/// as "block/conv1/BiasAdd" contains "conv1", or else the one with the most similar spelling. If no name is similar,
/// returns "; `graft inspect` ... lists its outputs".
[[nodiscard]] std::string did_you_mean(const std::string& name, std::vector<std::string> names);

/// Returns the advice to set ImportOptions::shapes, for messages about unknown sizes.
[[nodiscard]] std::string give_shapes();

/// Returns a clause such as "its inputs are image [1, 3, 8, 8]".
[[nodiscard]] std::string inputs_text(const onnx::Graph& graph);

}  // namespace graft

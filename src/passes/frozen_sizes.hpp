// Sizes of the images that a network was made for, which its constants still hold.
#pragma once

#include <string>
#include <vector>

#include "graph/model.hpp"

namespace graft {

struct FrozenSize {
  std::string node;  ///< "node 'pool' (MaxPool)"
  std::string text;  ///< What it holds, and what follows.
};

/// Nodes of the main graph that hold for the sizes which the file declares, where these are dynamic now: windows that
/// take the whole image or follow from its size, and reshapes to lengths that do. `declared` is the model with the
/// sizes of its file, whose tensors have the same names. The shapes of both are inferred.
[[nodiscard]] std::vector<FrozenSize> find_frozen_sizes(const Model& declared, const Model& dynamic);

}  // namespace graft

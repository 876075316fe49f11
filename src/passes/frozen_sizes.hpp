// Sizes of the images that a network was made for, which its constants still hold.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "graft/node_ref.hpp"
#include "onnx/model.hpp"
#include "passes/report.hpp"

namespace graft::passes {

struct FrozenSize {
  NodeRef node;
  std::string text;  ///< What it holds, and what follows.
};

/// Nodes of the main graph that hold for the sizes which the file declares, where these are dynamic now: windows that
/// take the whole image or follow from its size, and reshapes to lengths that do. `declared` is the model with the
/// sizes of its file, whose tensors have the same names. The shapes of both are inferred.
[[nodiscard]] std::vector<FrozenSize> find_frozen_sizes(const onnx::Model& declared, const onnx::Model& dynamic);

/// The same for a model that was read with these shapes of its inputs; nothing where none of them is dynamic.
/// `read_declared` reads it with the sizes of its file; where it throws Error, the file declares none.
[[nodiscard]] std::vector<FrozenSize> find_frozen_sizes(const onnx::Model& model,
                                                        const std::map<std::string, Shape, std::less<>>& shapes,
                                                        const std::function<onnx::Model()>& read_declared);

/// Returns a warning for each place that no rewrite of the conversion has replaced.
[[nodiscard]] std::vector<std::string> frozen_size_warnings(const std::vector<FrozenSize>& frozen,
                                                            const ConvertReport& report);

}  // namespace graft::passes

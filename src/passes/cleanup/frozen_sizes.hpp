// Nodes whose constants fit only the image sizes that a network was exported with.
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
  std::string text;  ///< A clause for messages: the constant, and the sizes that it fits.
};

/// Returns the nodes of the main graph that fit only the sizes which the file declares, although these sizes are
/// dynamic: windows that cover the whole image or follow from its size, and reshapes to lengths that do. `declared` is
/// the model with the sizes of its file, whose tensors have the same names. The shapes of both models must have been
/// inferred.
[[nodiscard]] std::vector<FrozenSize> find_frozen_sizes(const onnx::Model& declared, const onnx::Model& dynamic);

/// Returns the nodes of a model, read with these input shapes, that fit only the sizes of its file; empty if no shape
/// is dynamic. `read_declared` reads the model with the sizes of its file. If `read_declared` throws Error, the file
/// declares no sizes.
[[nodiscard]] std::vector<FrozenSize> find_frozen_sizes(const onnx::Model& model,
                                                        const std::map<std::string, Shape, std::less<>>& shapes,
                                                        const std::function<onnx::Model()>& read_declared);

/// Returns a warning for each place that no rewrite of the conversion has replaced.
[[nodiscard]] std::vector<std::string> frozen_size_warnings(const std::vector<FrozenSize>& frozen,
                                                            const RewriteReport& report);

}  // namespace graft::passes

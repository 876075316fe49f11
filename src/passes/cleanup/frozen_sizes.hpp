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

/// Returns the nodes of the main graph that are correct only for the sizes in the file, although these sizes are
/// dynamic: pools whose windows were computed from the size of the image, and Reshapes to constant lengths computed
/// from it. `declared` is the model with the sizes of the file, and `dynamic` the same model with dynamic sizes and the
/// same tensor names. Shapes must have been inferred in both models.
[[nodiscard]] std::vector<FrozenSize> find_frozen_sizes(const onnx::Model& declared, const onnx::Model& dynamic);

/// Returns the nodes of `model`, which was read with the input shapes `shapes`, that are correct only for the sizes in
/// its file; empty if no size in `shapes` is dynamic. `read_declared` reads the model with the sizes in the file. If it
/// throws Error, the windows of pools are not checked.
[[nodiscard]] std::vector<FrozenSize> find_frozen_sizes(const onnx::Model& model,
                                                        const std::map<std::string, Shape, std::less<>>& shapes,
                                                        const std::function<onnx::Model()>& read_declared);

/// Returns one warning for each entry of `frozen`, except for nodes that a fusion with
/// OperatorFusion::lifts_frozen_sizes has replaced according to `report`.
[[nodiscard]] std::vector<std::string> frozen_size_warnings(const std::vector<FrozenSize>& frozen,
                                                            const RewriteReport& report);

}  // namespace graft::passes

// The steps of a cut, which `inspect` and `convert` use as well.
#pragma once

#include <functional>
#include <optional>
#include <vector>

#include "graft/toolkit/cut.hpp"
#include "import/cut_network.hpp"
#include "onnx/model.hpp"

namespace graft::toolkit {

/// Cuts a network with inferred shapes as the public `cut` does; `nodes` are the verdicts on its nodes.
/// CutOptions::inspect is ignored. Throws NoCut, and the errors of the public `cut`.
[[nodiscard]] std::optional<CutResult> cut(const graft::onnx::Model& model,
                                           const std::vector<report::NodeSupport>& nodes, const CutOptions& options);

/// Returns whether the network should be cut: a node does not run or its advice is to cut the network, and `can_cut`
/// returns true. Otherwise removes the advice to cut from the nodes. `can_cut` is called at most once, and has to
/// return the result of can_be_cut.
[[nodiscard]] bool decide_on_cut(std::vector<report::NodeSupport>& nodes, const std::function<bool()>& can_cut);

/// Returns whether a network with inferred shapes can be cut so that arithmetic is left in TensorRT; `nodes` are the
/// verdicts on its nodes.
[[nodiscard]] bool can_be_cut(const graft::onnx::Model& model, const std::vector<report::NodeSupport>& nodes);

}  // namespace graft::toolkit

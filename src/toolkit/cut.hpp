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

/// Returns whether some node does not run, or the advice on one is a cut, and a network with inferred shapes can be cut
/// so that arithmetic is left in TensorRT. If it cannot be cut, withdraws the advice. `can_cut` is called at most once,
/// and has to return what can_be_cut returns.
[[nodiscard]] bool decide_on_cut(std::vector<report::NodeSupport>& nodes, const std::function<bool()>& can_cut);

/// Returns whether a network with inferred shapes can be cut so that arithmetic is left in TensorRT; `nodes` are the
/// verdicts on its nodes.
[[nodiscard]] bool can_be_cut(const graft::onnx::Model& model, const std::vector<report::NodeSupport>& nodes);

}  // namespace graft::toolkit

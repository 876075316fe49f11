// Compares every tensor that two models have in common, to find where they begin to differ.
#pragma once

#include <optional>

#include "graft/report/layers.hpp"
#include "graft/toolkit/export.hpp"
#include "graft/toolkit/model.hpp"
#include "graft/toolkit/precision.hpp"
#include "graft/toolkit/tensor.hpp"
#include "graft/toolkit/verify.hpp"

namespace graft::toolkit {

using ComparedTensor = report::ComparedLayer;
using report::Divergence;
using report::Failure;

/// The nodes of the first divergence alone, which reproduce the difference.
struct ReducedModels {
  Model reference;
  Model candidate;
  Tensors inputs;  ///< The inputs of both models, without those whose type is not a TensorType.
};

/// The report with the candidate, which to_page draws (graft/toolkit/present.hpp), and the models of the first
/// divergence.
struct LayersResult : report::LayersReport {
  Model candidate = {};
  std::optional<ReducedModels> reduced = {};  ///< Set if `first` is.
};

/// Runs both models on the CPU on the same inputs and compares them tensor by tensor. Tensors are paired by position in
/// the graph, name and values, also across rewrites and layouts. With `emulated`, the candidate is computed as in that
/// type, without a device; reference and candidate may then be the same model. Throws as verify does.
[[nodiscard]] GRAFT_API LayersResult verify_layers(const Model& reference, const Model& candidate,
                                                   const VerifyOptions& options = {},
                                                   std::optional<Precision> emulated = {});

}  // namespace graft::toolkit

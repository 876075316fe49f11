// Compares every tensor that two models have in common, to find where they begin to differ.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "graft/report/layers.hpp"
#include "graft/report/precision.hpp"
#include "graft/toolkit/export.hpp"
#include "graft/toolkit/model.hpp"
#include "graft/toolkit/tensor.hpp"
#include "graft/toolkit/verify.hpp"

namespace graft::toolkit {

using ComparedTensor = report::ComparedLayer;
using report::Divergence;
using report::Failure;
using report::Precision;

/// The smallest models that reproduce a result: the nodes of the first divergence, or the nodes with which the
/// candidate does not run.
struct ReducedModels {
  Model reference;  ///< A model without nodes if the candidate does not run.
  Model candidate;
  Tensors inputs;  ///< The inputs of both models, without `left_out`.
  /// The inputs whose type is not a TensorType, so that an .npz file cannot contain them and `inputs` lacks them. Each
  /// is a name with its type, "codes (u4)".
  std::vector<std::string> left_out = {};
};

/// The report together with the candidate model, whose graph to_page (graft/toolkit/present.hpp) draws, and with the
/// reduced models of the first divergence or the failure.
struct LayersResult : report::LayersReport {
  Model candidate = {};
  std::optional<ReducedModels> reduced = {};  ///< Set if `first` is set, or if `failure` has nodes.
};

/// Runs both models on the CPU on the same inputs and compares them tensor by tensor. Tensors are paired by position in
/// the graph, name and values, also across rewrites and layouts. With `emulated`, the candidate is computed as in that
/// type, without a device; reference and candidate may then be the same model. Throws as verify does.
[[nodiscard]] GRAFT_API LayersResult verify_layers(const Model& reference, const Model& candidate,
                                                   const VerifyOptions& options = {},
                                                   std::optional<Precision> emulated = {});

/// Returns the paths that save_reduced writes: `candidate`, and files with similar names next to it. Writes nothing.
/// Throws Error for a name that does not end in .onnx.
[[nodiscard]] GRAFT_API report::ReducedFiles reduced_files(const std::filesystem::path& candidate);

/// Writes the models of `reduced` as ONNX files and their inputs as an .npz file, each completely or not at all, and
/// sets `reduced_files` without its command. Does nothing where `reduced` is not set. Throws Error as reduced_files and
/// Model::save do.
GRAFT_API void save_reduced(LayersResult& result, const std::filesystem::path& candidate);

}  // namespace graft::toolkit

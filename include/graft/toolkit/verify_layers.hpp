// Compares every tensor that two models have in common, to find where they begin to differ.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "graft/node_ref.hpp"
#include "graft/toolkit/export.hpp"
#include "graft/toolkit/model.hpp"
#include "graft/toolkit/precision.hpp"
#include "graft/toolkit/tensor.hpp"
#include "graft/toolkit/verify.hpp"

namespace graft::toolkit {

/// A tensor of the reference and the corresponding tensor of the candidate.
struct ComparedTensor {
  TensorRef reference;
  TensorRef candidate;
  NodeRef reference_node;  ///< The node that computes the tensor.
  NodeRef candidate_node;
  bool is_output = false;  ///< Whether the tensor is an output of at least one of the models.
  Verdict verdict = Verdict::same;
  std::string not_compared;  ///< Why the tensors were not compared; empty where they were.
  /// Number of elements outside the tolerance. This and the next three members are of the worst run.
  std::int64_t mismatched = 0;
  double largest_absolute = 0;  ///< Largest absolute difference; infinite or NaN where only one side is.
  double largest_relative = 0;
  std::optional<double> snr_db;  ///< Signal to noise ratio; nothing where nothing differs.
  std::string diagnosis;         ///< The kind of difference, where it was recognized: "NaN in the candidate".
};

/// The first tensor, in the order of computation, that the candidate computes wrongly from correct inputs.
struct Divergence {
  std::size_t tensor = 0;  ///< The index into LayersResult::tensors.
  std::string why;         ///< The difference: "1.01 times the reference".
  /// The nodes between this tensor and earlier tensors that both models have; the node that computes the tensor is the
  /// last.
  std::vector<NodeRef> reference_nodes;
  std::vector<NodeRef> candidate_nodes;
  /// The differences between the nodes: operator, attributes, constants. Nothing where a rewrite created other nodes or
  /// a type is emulated.
  std::optional<std::vector<std::string>> differences;
  Model reference;  ///< Only these nodes, which reproduce the difference.
  Model candidate;
  Tensors inputs;  ///< The inputs of both models, without those whose type is not among DType.
};

/// A candidate that does not run.
struct Failure {
  std::optional<NodeRef> node;  ///< The first node with which the candidate does not run; nothing where none was found.
  std::string message;
  std::vector<NodeRef> nodes;  ///< The nodes of the smallest part that fails.
};

struct LayerVerification;

struct LayersResult {
  Verdict verdict = Verdict::same;      ///< The verdict on the outputs. Internal tensors may differ where it is `same`.
  std::vector<ComparedTensor> tensors;  ///< The compared tensors, in the candidate's order of computation.
  std::optional<Divergence> first;      ///< Empty where no tensor is worse than the tensors from which it is computed.
  /// The index of the first tensor with NaN that is computed from tensors without NaN.
  std::optional<std::size_t> nan_begins;
  std::optional<Failure> failure;     ///< Set where the candidate does not run; `tensors` is empty then.
  std::vector<std::string> problems;  ///< Inputs or outputs that one model lacks.
  std::size_t runs = 0;
  std::string ran_in = {};                                ///< See VerifyResult::ran_in.
  std::vector<std::string> left_out = {};                 ///< See VerifyResult::left_out.
  std::vector<std::string> unreached = {};                ///< See VerifyResult::unreached.
  std::string dispute = {};                               ///< See VerifyResult::dispute_text.
  std::vector<std::string> without_own_kernels = {};      ///< See VerifyResult::without_own_kernels.
  std::shared_ptr<const LayerVerification> details = {};  ///< Input of graft/toolkit/present.hpp.
};

/// Runs both models on the CPU on the same inputs and compares them tensor by tensor. Tensors are paired by position in
/// the graph, name and values, also across rewrites and layouts. With `emulated`, the candidate is computed as in that
/// type, without a device; reference and candidate may then be the same model. Throws as verify does.
[[nodiscard]] GRAFT_API LayersResult verify_layers(const Model& reference, const Model& candidate,
                                                   const VerifyOptions& options = {},
                                                   std::optional<Precision> emulated = {});

}  // namespace graft::toolkit

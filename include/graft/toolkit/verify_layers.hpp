// Where two models part: every tensor that both have, compared.
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

/// A tensor that both models have.
struct ComparedTensor {
  TensorRef reference;
  TensorRef candidate;
  NodeRef reference_node;  ///< What computes it.
  NodeRef candidate_node;
  bool is_output = false;  ///< Of one of the models at least.
  Verdict verdict = Verdict::same;
  std::string not_compared;     ///< Why it was not compared; empty where it was.
  std::int64_t mismatched = 0;  ///< Elements outside the tolerance, of the worst run; so is what follows.
  double largest_absolute = 0;  ///< Difference; infinite or NaN where one side alone is.
  double largest_relative = 0;
  std::optional<double> snr_db;  ///< Nothing where nothing differs.
  std::string diagnosis;         ///< What is wrong, where it was recognized: "NaN in the candidate".
};

/// The first tensor, in the order of computation, that the candidate gets wrong from inputs that are right.
struct Divergence {
  std::size_t tensor = 0;  ///< Of LayersResult::tensors.
  std::string why;         ///< "1.01 times the reference".
  /// What lies between this tensor and those before it that both models have; the node that computes it is the last.
  std::vector<NodeRef> reference_nodes;
  std::vector<NodeRef> candidate_nodes;
  /// What the nodes have that is another: operator, attributes, constants. Nothing where a rewrite made other nodes.
  std::optional<std::vector<std::string>> differences;
  Model reference;  ///< These nodes alone, in which the difference shows by itself.
  Model candidate;
  Tensors inputs;  ///< What both are given; without those whose type is not among DType.
};

/// The candidate does not run.
struct Failure {
  std::optional<NodeRef> node;  ///< The model runs up to this node and not with it; nothing where none was found.
  std::string message;
  std::vector<NodeRef> nodes;  ///< The smallest part that fails.
};

struct LayerVerification;

struct LayersResult {
  Verdict verdict = Verdict::same;        ///< Of the outputs; tensors inside may differ all the same.
  std::vector<ComparedTensor> tensors;    ///< In the candidate's order of computation.
  std::optional<Divergence> first;        ///< Nothing where no tensor is worse than what it is computed from.
  std::optional<std::size_t> nan_begins;  ///< The first tensor with NaN that is computed from tensors without.
  std::optional<Failure> failure;         ///< Then there are no tensors.
  std::vector<std::string> problems;      ///< Inputs or outputs that one of the models lacks.
  std::size_t runs = 0;
  std::string ran_in = {};                                ///< As VerifyResult::ran_in.
  std::vector<std::string> left_out = {};                 ///< As VerifyResult::left_out.
  std::vector<std::string> unreached = {};                ///< As VerifyResult::unreached.
  std::string dispute = {};                               ///< As VerifyResult::dispute.
  std::vector<std::string> without_own_kernels = {};      ///< As VerifyResult::without_own_kernels.
  std::shared_ptr<const LayerVerification> details = {};  ///< For graft/toolkit/present.hpp.
};

/// Runs both models on the CPU on the same inputs and compares them tensor by tensor: by places, names and numbers,
/// through rewrites and from one layout into the other. `emulated` judges the candidate as it would compute in that
/// type, without a device; reference and candidate may then be the same model. Throws as verify does.
[[nodiscard]] GRAFT_API LayersResult verify_layers(const Model& reference, const Model& candidate,
                                                   const VerifyOptions& options = {},
                                                   std::optional<Precision> emulated = {});

}  // namespace graft::toolkit

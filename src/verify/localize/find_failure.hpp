// Finds the node with which a model does not run.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "graft/node_ref.hpp"
#include "onnx/model.hpp"
#include "runtime/engine.hpp"
#include "verify/localize/partial_runs.hpp"

namespace graft::verify {

struct Failure {
  /// The node with which the model does not run, while it runs up to that node; nothing if none was found.
  std::optional<NodeRef> node;
  std::string message;         ///< The error of the smallest part that fails, or of the whole model if no part fails.
  std::vector<NodeRef> nodes;  ///< The nodes of that part.
  onnx::Model part;            ///< The smallest part that fails: the node, and the necessary nodes before it.
  runtime::TensorMap inputs;   ///< The inputs of that part.
};

/// Returns the smallest failing part. `message` is the error of the whole model.
[[nodiscard]] Failure find_failure(const PartialRuns& model, const runtime::TensorMap& inputs, std::string message);

}  // namespace graft::verify

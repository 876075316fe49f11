// Finds the nodes for which a model does not run.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "graft/node_ref.hpp"
#include "onnx/model.hpp"
#include "runtime/engine.hpp"
#include "verify/partial_runs.hpp"

namespace graft::verify {

struct Failure {
  std::optional<NodeRef> node;  ///< The model runs up to it and not with it. Nothing if none was found.
  std::string message;          ///< Of the smallest part that fails; of the whole where there is none.
  std::vector<NodeRef> nodes;   ///< Of that part.
  onnx::Model part;             ///< The smallest that fails: the node, and as many before it as that takes.
  runtime::TensorMap inputs;    ///< What it is given.
};

/// `message` is what the whole said.
[[nodiscard]] Failure find_failure(const PartialRuns& model, const runtime::TensorMap& inputs, std::string message);

}  // namespace graft::verify

// Finds the node that keeps a model from running.
#pragma once

#include <string>

#include "graft/report/layers.hpp"
#include "onnx/model.hpp"
#include "runtime/engine.hpp"
#include "verify/localize/partial_runs.hpp"

namespace graft::verify {

using report::Failure;

/// A failure of a model, and the smallest part of the model that also fails: a node and the necessary nodes before it.
struct FoundFailure {
  Failure failure;
  onnx::Model part;
  runtime::TensorMap inputs;  ///< The inputs of the part.
};

/// Returns the smallest part of a model that fails with these inputs. `message` is the error message of the whole
/// model.
[[nodiscard]] FoundFailure find_failure(const PartialRuns& model, const runtime::TensorMap& inputs,
                                        std::string message);

}  // namespace graft::verify

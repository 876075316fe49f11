// Finds the node that keeps a model from running.
#pragma once

#include <string>

#include "graft/report/layers.hpp"
#include "onnx/model.hpp"
#include "runtime/engine.hpp"
#include "verify/localize/partial_runs.hpp"

namespace graft::verify {

using report::Failure;

/// A failure with the smallest part that fails: the node, and the necessary nodes before it.
struct FoundFailure {
  Failure failure;
  onnx::Model part;
  runtime::TensorMap inputs;  ///< The inputs of the part.
};

/// Returns the smallest failing part. `message` is the error of the whole model.
[[nodiscard]] FoundFailure find_failure(const PartialRuns& model, const runtime::TensorMap& inputs,
                                        std::string message);

}  // namespace graft::verify

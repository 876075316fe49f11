// Finds nodes whose values a comparison cannot judge, because both models compute them with the same definition, and
// compares the two implementations of that definition.
#pragma once

#include <vector>

#include "graft/report/verify.hpp"
#include "onnx/model.hpp"
#include "runtime/engine.hpp"

namespace graft::verify {

/// Returns the operators of loaded libraries that compute nodes of the reference, also inside subgraphs and functions,
/// with the number of these nodes. No engine has such an operator, so both models compute the nodes with the library's
/// own definition. A node with a function in the file is not counted: the file defines it.
[[nodiscard]] std::vector<report::OwnDefinition> find_own_definitions(const onnx::Model& reference);

/// Compares the function of each operator in `definitions` with its CPU kernel at nodes of the main graph, on the
/// tensors that the reference has there in a run with `inputs`, and records the results in `definitions`. Of each
/// operator only the first few nodes are run. An operator whose nodes cannot be run keeps the verdict
/// `nothing_compared`, with the reason.
void compare_with_kernels(const runtime::Engine& engine, const onnx::Model& reference,
                          const runtime::CompileOptions& options, const runtime::TensorMap& inputs,
                          std::vector<report::OwnDefinition>& definitions);

}  // namespace graft::verify

// Computes the number of nodes and the bytes of weights of a model, in the same way for all reports.
#pragma once

#include <cstdint>

#include "graft/report/model.hpp"
#include "onnx/model.hpp"

namespace graft::onnx {

using report::NodeCounts;

[[nodiscard]] NodeCounts count_nodes(const Model& model);

/// Returns the size in bytes of the initializers and Constant nodes, including those in subgraphs of nodes but not
/// those in functions.
[[nodiscard]] std::uint64_t bytes_of_weights(const Model& model);

}  // namespace graft::onnx

// The number of nodes and the bytes of weights of a model, as every report counts them.
#pragma once

#include <cstddef>
#include <cstdint>

#include "onnx/model.hpp"

namespace graft::onnx {

/// The nodes of the graph and of the bodies of its nodes, such as Loop and If. The bodies of functions are not counted.
struct NodeCounts {
  std::size_t nodes = 0;      ///< All except Constant nodes.
  std::size_t constants = 0;  ///< The Constant nodes.
  std::size_t in_bodies = 0;  ///< The nodes, among both, that are in bodies of other nodes.

  [[nodiscard]] std::size_t all() const { return nodes + constants; }
};

[[nodiscard]] NodeCounts count_nodes(const Model& model);

/// Returns the bytes of the initializers and Constant nodes, also in the bodies of nodes, and not in functions.
[[nodiscard]] std::uint64_t bytes_of_weights(const Model& model);

}  // namespace graft::onnx

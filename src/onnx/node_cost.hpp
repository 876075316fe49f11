// Counts the multiply-accumulate operations, the parameters and the bytes of nodes, for all reports and estimates.
#pragma once

#include <cstdint>
#include <optional>

#include "graft/report/node_cost.hpp"
#include "onnx/model.hpp"

namespace graft::onnx {

using report::NetworkCost;
using report::NodeCost;

/// Returns whether the operator of the node sums products: a convolution, a matrix product, a recurrent layer or an
/// attention.
[[nodiscard]] bool sums_products(const Node& node);

/// Returns the multiply-accumulate operations of a node in one run; 0 for a node that sums no products. A dynamic size
/// counts as `unknown_size`; if `unknown_size` is absent, nothing is returned for a node with such a size. Nothing is
/// also returned for an operator that Graft does not know, and if the number does not fit into 64 bits. The bodies of
/// the node are not included.
[[nodiscard]] std::optional<std::uint64_t> multiply_accumulates(const Node& node,
                                                                std::optional<std::uint64_t> unknown_size = {});

/// Returns the multiply-accumulate operations, the parameters and the bytes of a node without its bodies. A
/// DequantizeLinear of a constant has no parameters: they belong to the nodes that read its result.
[[nodiscard]] NodeCost cost_of(const Node& node);

/// Returns the sums of the costs of all nodes of a model, including those in bodies.
[[nodiscard]] NetworkCost cost_of(const Model& model);

}  // namespace graft::onnx

// The work and the memory of a node, as all reports count them.
#pragma once

#include <cstdint>
#include <optional>
#include <tuple>

#include "graft/report/field.hpp"

namespace graft::report {

/// The work and the memory of a node in one run. A member is empty if it depends on a size or a type that is not known.
struct NodeCost {
  std::optional<std::uint64_t> macs = {};
  std::optional<std::uint64_t> parameters = {};
  std::optional<std::uint64_t> weight_bytes = {};
  std::optional<std::uint64_t> tensor_bytes = {};
  friend bool operator==(const NodeCost&, const NodeCost&) = default;

  static constexpr auto macs_meaning =
      "The multiply-accumulate operations of one run: the products that a convolution, a matrix product, a recurrent "
      "layer or an attention sums; 0 for other operators. Null where a size is not fixed, and for an operator that "
      "Graft does not know.";
  static constexpr auto parameters_meaning =
      "The number of elements of the constants that the node computes with: floating-point numbers, and the integers "
      "of "
      "quantized weights, without their scales. Shapes, axes and indices do not count.";
  static constexpr auto weight_bytes_meaning = "The bytes of all constants that the node reads.";
  static constexpr auto tensor_bytes_meaning =
      "The bytes of the tensors that the node reads and writes, without constants. Null where a size or a type is not "
      "fixed.";

  static constexpr auto fields() {
    return std::tuple{field("macs", &NodeCost::macs, macs_meaning),
                      field("parameters", &NodeCost::parameters, parameters_meaning),
                      field("weight_bytes", &NodeCost::weight_bytes, weight_bytes_meaning),
                      field("tensor_bytes", &NodeCost::tensor_bytes, tensor_bytes_meaning)};
  }
};

/// The work and the weights of a network in one run. The bodies of Loop, Scan and If count once.
struct NetworkCost {
  std::uint64_t macs = 0;
  std::uint64_t parameters = 0;
  std::uint64_t nodes_without_macs = 0;

  static constexpr auto fields() {
    return std::tuple{
        field("macs", &NetworkCost::macs,
              "The sum of the multiply-accumulate operations of all nodes where they are known. The bodies of Loop, "
              "Scan and If count once."),
        field("parameters", &NetworkCost::parameters,
              "The number of parameters; a constant that several nodes read counts once."),
        field("nodes_without_macs", &NetworkCost::nodes_without_macs,
              "The number of nodes whose multiply-accumulate operations are not known, so that the sum lacks them.")};
  }
};

}  // namespace graft::report

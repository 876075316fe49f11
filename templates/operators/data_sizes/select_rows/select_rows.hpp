// SelectRows: the rows of x whose score is above a threshold, in their order. Their number depends on the data.
#pragma once

#include <stdexcept>

#include "graft/operator/define_operator.hpp"

namespace my_ops {

struct SelectRows {
  static constexpr auto name = "SelectRows";
  static constexpr int version = 1;
  static constexpr auto doc = "y = the rows of x whose score is greater than threshold, in their order.";
  static constexpr auto source = "torch: x[score > threshold]";
  static constexpr auto why_plugin = "TensorRT-RTX has no layer whose output size depends on data";

  float threshold = 0.5F;

  static constexpr auto attributes() {
    return std::tuple{graft::attribute("threshold", &SelectRows::threshold, "what a score has to be above")};
  }
  static constexpr auto ports() {
    return std::array{graft::input("x", "T", "N,C", "the rows"), graft::input("score", "T", "N", "one for each row"),
                      graft::output("y", "T", "count,C", "those that were selected"),
                      graft::size_output("count", "how many they are")};
  }
  /// The types that each name in the ports may have.
  static constexpr auto types() {
    using enum graft::DType;
    return std::array{graft::TypeConstraint("T", f32, f16, bf16)};
  }
  /// Infers the shape of each output; `count` is output 1. TensorRT times kernels with half of the rows, and reserves
  /// memory for all of them.
  static std::vector<graft::Shape> infer_shapes(std::span<const graft::Shape> inputs) {
    if (inputs[0].size() != 2 || inputs[1].size() != 1) {
      throw std::invalid_argument("`x` has rank " + std::to_string(inputs[0].size()) + " and `score` " +
                                  std::to_string(inputs[1].size()) + ", allowed are 2 and 1");
    }
    const graft::Dim& rows = inputs[0][0];
    return {{graft::data_size(1, ceil_div(rows, 2), rows), inputs[0][1]}, {}};
  }
  /// Checks sizes that are known only at run time.
  static graft::Status check(const graft::Problem& problem) {
    const std::int64_t rows = problem.inputs[0].extents[0];
    const std::int64_t scores = problem.inputs[1].extents[0];
    if (rows == scores) return {};
    return graft::invalid_argument("SelectRows: `score` has " + std::to_string(scores) +
                                   " elements, allowed is one for each of the " + std::to_string(rows) +
                                   " rows of `x`");
  }
  /// Returns the bytes of an array that holds the row of y for each row of x, or -1.
  static std::size_t workspace(const graft::Problem& problem) {
    return static_cast<std::size_t>(problem.inputs[0].extents[0]) * sizeof(std::int64_t);
  }
  /// Returns the operator as standard ONNX operators, for runtimes without this library.
  static std::optional<graft::Function> function(const graft::FunctionInputs& /*inputs*/) {
    return graft::Function{name,
                           "score32 = Cast<to=1>(score)\n"
                           "limit = Constant<value_float=@threshold>()\n"
                           "selected = Greater(score32, limit)\n"
                           "x32 = Cast<to=1>(x)\n"  // ONNX's Compress does not support bf16
                           "y32 = Compress<axis=0>(x32, selected)\n"
                           "y = CastLike(y32, x)\n"
                           "ones = Cast<to=7>(selected)\n"
                           "count = ReduceSum<keepdims=0>(ones)"};
  }
};

graft::Status run(const SelectRows& op, const graft::Problem& problem, const graft::Buffers& buffers,
                  const graft::CpuContext& context);
std::span<const graft::Variant<SelectRows>> cuda_kernels(const SelectRows& op);

}  // namespace my_ops

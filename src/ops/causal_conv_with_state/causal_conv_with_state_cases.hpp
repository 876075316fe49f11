// Cases of CausalConvWithState: single steps and pieces of sequences, with and without a bias and a state.
#pragma once

#include "ops/causal_conv_with_state/causal_conv_with_state.hpp"
#include "ops/operator_case.hpp"
#include "ops/random_cases.hpp"

namespace graft::ops {

/// Returns the inputs of a problem with `taps` weights per channel: x, weight, and the first `optional` of the optional
/// inputs bias and past_state.
[[nodiscard]] inline std::vector<TensorDesc> causal_inputs(DType dtype, const Extents& x, std::int64_t taps,
                                                           std::size_t optional) {
  std::vector<TensorDesc> inputs{{.dtype = dtype, .extents = x}, {.dtype = dtype, .extents = {x[1], 1, taps}}};
  if (optional > 0) inputs.push_back({.dtype = dtype, .extents = {x[1]}});
  if (optional > 1) inputs.push_back({.dtype = dtype, .extents = {x[0], x[1], taps - 1}});
  return inputs;
}

[[nodiscard]] inline std::vector<OperatorCase> cases(const CausalConvWithState& /*tag*/) {
  std::vector<OperatorCase> cases;
  std::vector<std::shared_ptr<const Operator>> ops;
  for (const char* activation : {"none", "silu", "swish"}) {
    ops.push_back(make_operator(operator_type<CausalConvWithState>(), {{"activation", activation}}));
  }
  const auto add = [&](const std::shared_ptr<const Operator>& op, DType dtype, const Extents& x, std::int64_t taps,
                       std::size_t optional, const std::string& what, Fill fill = Fill::normal) -> OperatorCase& {
    return cases.emplace_back(OperatorCase{.name = case_name({.dtype = dtype, .extents = x}) + "_" +
                                                   std::to_string(taps) + "_" + std::to_string(optional) + "_" +
                                                   std::get<std::string>(*op->get("activation")) + what,
                                           .op = op,
                                           .inputs = causal_inputs(dtype, x, taps, optional),
                                           .fill = fill,
                                           // The relative error covers expf and the division. The absolute error covers
                                           // the sum of products, which is rounded after every addition and may exceed
                                           // 50 in between before its terms cancel.
                                           .tolerance = f32_error(16),
                                           .absolute = 50 * f32_error(static_cast<double>(taps))});
  };
  for (const DType dtype : {DType::f32, DType::f16, DType::bf16}) {
    for (const auto& op : ops) {
      for (const std::size_t optional : {0U, 1U, 2U}) {
        add(op, dtype, {2, 6, 1}, 4, optional, "");
        add(op, dtype, {2, 6, 37}, 4, optional, "");
      }
      for (const Fill fill : {Fill::zeros, Fill::tiny, Fill::special, Fill::sparse}) {
        const std::string what = "_fill_" + std::to_string(static_cast<int>(fill));
        add(op, dtype, {2, 6, 1}, 4, 2, what, fill);
        add(op, dtype, {2, 6, 40}, 4, 2, what, fill);
        add(op, dtype, {2, 6, 41}, 5, 2, what, fill);
      }
    }
    for (const std::int64_t length : {2, 3, 4, 5, 7, 8, 9, 15, 16, 17, 31, 32, 33, 257, 1024}) {
      add(ops[1], dtype, {3, 5, length}, 4, 2, "");
      add(ops[0], dtype, {1, 3, length}, 3, 2, "");
    }
    for (const std::int64_t taps : {1, 2, 5, 7, 8, 9, 10, 16, 17, 18, 31, 65}) {
      for (const std::int64_t length : {1, 3, 8, 20, 63, 64}) add(ops[1], dtype, {2, 3, length}, taps, 2, "");
      add(ops[0], dtype, {1, 2, 77}, taps, 0, "");
    }
    add(ops[1], dtype, {3, 1000, 1}, 4, 2, "");
    add(ops[1], dtype, {3, 1000, 1}, 3, 2, "");
    add(ops[1], dtype, {2, 300, 520}, 4, 2, "");
    add(ops[1], dtype, {2, 300, 521}, 4, 1, "");
    add(ops[1], dtype, {0, 5, 9}, 4, 2, "_no_items");
    add(ops[1], dtype, {3, 0, 9}, 4, 2, "_no_channels");
    add(ops[1], dtype, {3, 5, 0}, 4, 2, "_no_elements");
    add(ops[1], dtype, {2, 6, 37}, 4, 2, "_no_bias").inputs[CausalConvWithState::bias].extents = {0};
    add(ops[1], dtype, {2, 6, 1}, 4, 2, "_no_bias").inputs[CausalConvWithState::bias].extents = {0};
    for (const std::int64_t taps : {4, 9}) {
      add(ops[1], dtype, {2, 6, 1}, taps, 2, "_shifted").shift = 1;
      add(ops[1], dtype, {2, 6, 37}, taps, 2, "_shifted").shift = 1;
      add(ops[1], dtype, {2, 6, 64}, taps, 2, "_shifted").shift = 1;
    }
    add(ops[1], dtype, {(std::int64_t{1} << 31) / 4096 + 1, 2, 2056}, 4, 1, "_large").large = true;
  }
  const auto in_place =
      make_operator(operator_type<CausalConvWithState>(), {{"activation", "silu"}, {"in_place", std::int64_t{1}}});
  for (const DType dtype : {DType::f32, DType::f16, DType::bf16}) {
    for (const std::int64_t taps : {2, 4, 9}) {
      for (const std::int64_t length : {0, 1, 2, 5, 37, 1024}) {
        add(in_place, dtype, {3, 7, length}, taps, 2, "_in_place");
      }
      add(in_place, dtype, {3, 7, 40}, taps, 2, "_in_place_shifted").shift = 1;
    }
  }
  const auto refuse = [&](std::size_t port, const Extents& found, const char* why) {
    OperatorCase& test = add(ops[0], DType::f32, {2, 6, 9}, 4, 2, "_refused_" + std::to_string(cases.size()));
    test.inputs[port].extents = found;
    test.refused = why;
  };
  refuse(CausalConvWithState::x, {6, 9}, "`x` has rank 2; the rank must be 3");
  refuse(CausalConvWithState::weight, {6, 4}, "`weight` has rank 2; the rank must be 3");
  refuse(CausalConvWithState::weight, {5, 1, 4}, "`weight` has shape 5x1x4; it must have shape 6x1xK");
  refuse(CausalConvWithState::weight, {6, 2, 4}, "`weight` has shape 6x2x4; it must have shape 6x1xK");
  refuse(CausalConvWithState::weight, {6, 1, 0}, "the length K of the kernel, is 0; it must be at least 1");
  refuse(CausalConvWithState::bias, {5}, "`bias` has shape 5; it must have shape 6");
  refuse(CausalConvWithState::bias, {1, 6}, "`bias` has shape 1x6; it must have shape 6");
  refuse(CausalConvWithState::past_state, {2, 6, 4}, "`past_state` has shape 2x6x4; it must have shape 2x6x3");
  refuse(CausalConvWithState::past_state, {1, 6, 3}, "`past_state` has shape 1x6x3; it must have shape 2x6x3");
  add(ops[0], DType::i8, {2, 6, 9}, 4, 2, "").refused = "does not take";
  add(ops[0], DType::f32, {1 << 16, 1 << 15, 0}, 4, 0, "_rows").refused = "it must have at most 2147483647 channels";
  add(in_place, DType::f32, {2, 6, 9}, 4, 1, "_no_state").refused =
      "`past_state` is left out; it must be f32 2x6x3, because `present_state` uses the memory of this input";
  add(in_place, DType::f32, {2, 6, 9}, 4, 2, "_empty_state").inputs[CausalConvWithState::past_state].extents = {0};
  cases.back().refused = "`past_state` is f32 0; it must be f32 2x6x3";
  return cases;
}

/// Returns the problems of a Mamba layer and of a gated delta net layer: whole sequences, and single steps of
/// generation.
[[nodiscard]] inline std::vector<TimedCase> timings(const CausalConvWithState& /*tag*/) {
  std::vector<TimedCase> timings;
  const auto add = [&](DType dtype, const Extents& x, std::size_t optional, double of_copy) {
    timings.push_back(
        {.attributes = {{"activation", "silu"}}, .inputs = causal_inputs(dtype, x, 4, optional), .of_copy = of_copy});
  };
  for (const DType dtype : {DType::f32, DType::f16, DType::bf16}) {
    add(dtype, {8, 5120, 2048}, 2, 0.9);
    add(dtype, {8, 8192, 1000}, 2, 0.9);
    add(dtype, {1, 8192, 512}, 2, 0);
    add(dtype, {1, 8192, 1}, 2, 0);
    add(dtype, {128, 8192, 1}, 2, 0);
  }
  return timings;
}

}  // namespace graft::ops

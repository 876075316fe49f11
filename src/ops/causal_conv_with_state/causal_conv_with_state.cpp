// Definition of CausalConvWithState: shapes, checks, the descriptions of missing inputs, ONNX function.
#include "ops/causal_conv_with_state/causal_conv_with_state.hpp"

#include <limits>
#include <stdexcept>

namespace graft::ops {
namespace {

Status refuse(std::size_t port, const Extents& found, const std::string& required) {
  return invalid_argument("CausalConvWithState: `" + std::string(CausalConvWithState::ports()[port].name) +
                          "` has shape " + to_string(found) + "; it must have " + required);
}

}  // namespace

std::vector<Shape> CausalConvWithState::infer_shapes(std::span<const Shape> inputs) {
  for (const std::size_t port : {std::size_t{x}, std::size_t{weight}}) {
    if (inputs[port].size() == 3) continue;
    throw std::invalid_argument("`" + std::string(ports()[port].name) + "` has rank " +
                                std::to_string(inputs[port].size()) + "; the rank must be 3");
  }
  if (inputs[weight][2] == Dim(0))
    throw std::invalid_argument("the last axis of `weight`, the length K of the kernel, is 0; it must be at least 1");
  return {inputs[x], {inputs[x][0], inputs[x][1], inputs[weight][2] - 1}};
}

/// Returns an error if the extents of the inputs contradict each other. infer_shapes has checked the ranks and K
/// before.
Status CausalConvWithState::check(const Problem& problem) {
  const Extents& from = problem.inputs[x].extents;
  const Extents& weights = problem.inputs[weight].extents;
  // The kernels count rows and taps in 32 bits.
  constexpr std::int64_t most = std::numeric_limits<std::int32_t>::max();
  if (from[1] > 0 && from[0] > most / from[1])
    return refuse(x, from, "at most 2147483647 channels in all items together");
  if (!(weights == Extents{from[1], 1, weights[2]}) || weights[2] > most) {
    return refuse(weight, weights, "shape " + std::to_string(from[1]) + "x1xK, with one row for each channel of x");
  }
  const Extents& added = problem.inputs[bias].extents;
  if (added.element_count() > 0 && !(added == Extents{from[1]}))
    return refuse(bias, added, "shape " + std::to_string(from[1]));
  const Extents& past = problem.inputs[past_state].extents;
  const Extents& state = problem.outputs[1].extents;
  if (past.element_count() > 0 && !(past == state)) return refuse(past_state, past, "shape " + to_string(state));
  return {};
}

TensorDesc CausalConvWithState::constant(std::size_t /*port*/, std::span<const TensorDesc> given) {
  return {.dtype = given[x].dtype, .layout = Layout::linear, .extents = {0}};
}

/// Returns the ONNX function. It gathers a window of K elements before every position, [N,C,L,K], and multiplies the
/// windows with weight, [C,1,K], because Conv would need the number of channels as an attribute, which the node does
/// not have. A bias without elements is padded with zeros.
std::optional<Function> CausalConvWithState::function(const FunctionInputs& inputs) const {
  std::string text =
      "x32 = Cast<to=1>(x)\n"
      "weight32 = Cast<to=1>(weight)\n"
      "front = Constant<value=int64(0)>()\n"
      "one = Constant<value=int64(1)>()\n"
      "last_axis = Constant<value_ints=[-1]>()\n"
      "length = Shape<start=2, end=3>(x)\n"
      "taps = Shape<start=2, end=3>(weight)\n"
      "state_length = Sub(taps, one)\n";
  if (inputs.count > past_state) {
    text += "past32 = Cast<to=1>(past_state)\n";
  } else {
    text +=
        "rows = Shape<start=0, end=2>(x)\n"
        "state_shape = Concat<axis=0>(rows, state_length)\n"
        "nothing = Constant<value_float=0.0>()\n"
        "past32 = Expand(nothing, state_shape)\n";
  }
  text +=
      "sequence = Concat<axis=2>(past32, x32)\n"
      "length_number = Squeeze(length)\n"
      "taps_number = Squeeze(taps)\n"
      "places = Range(front, length_number, one)\n"
      "column = Unsqueeze(places, last_axis)\n"
      "offsets = Range(front, taps_number, one)\n"
      "indices = Add(column, offsets)\n"
      "windows = Gather<axis=2>(sequence, indices)\n"
      "products = Mul(windows, weight32)\n"
      "sums = ReduceSum<keepdims=0>(products, last_axis)\n";
  std::string sums = "sums";
  if (inputs.count > bias) {
    text +=
        "bias32 = Cast<to=1>(bias)\n"
        "channels = Shape<start=0, end=1>(weight)\n"
        "held = Shape(bias)\n"
        "missing = Sub(channels, held)\n"
        "none_before = Constant<value_ints=[0]>()\n"
        "zeros_around = Concat<axis=0>(none_before, missing)\n"
        "whole_bias = Pad(bias32, zeros_around)\n"
        "of_channels = Unsqueeze(whole_bias, last_axis)\n"
        "shifted = Add(sums, of_channels)\n";
    sums = "shifted";
  }
  if (activation != CausalActivation::none) {
    text += "gate = Sigmoid(" + sums + ")\nactivated = Mul(" + sums + ", gate)\n";
    sums = "activated";
  }
  text += "y = CastLike(" + sums +
          ", x)\n"
          "whole = Add(state_length, length)\n"
          "state32 = Slice(sequence, length, whole, last_axis)\n"
          "present_state = CastLike(state32, x)\n";
  std::string own_name = std::string(name) + "_" + std::to_string(inputs.count);
  if (activation != CausalActivation::none) own_name += "_silu";
  return Function{own_name, text};
}

}  // namespace graft::ops

// Definition of Normalize: checks, the attribute that replaces a missing input, ONNX function, drop-in.
#include "ops/normalize/normalize.hpp"

#include <algorithm>
#include <array>

#include "ops/channel_values.hpp"

namespace graft::ops {
namespace {

/// Translates the fields of NVIDIA's plugin (plugin/normalizePlugin and plugin/common/kernels/normalizeLayer.cu of
/// TensorRT 10.14). nbWeights is the number of lists of weights, which is 1. With acrossSpatial and a factor for each
/// channel the plugin divides by the factors (scalChannelKernel); in all other cases it multiplies.
Status translate(std::span<const NamedAttribute> fields, std::vector<NamedAttribute>& attributes) {
  for (const auto& [name, value] : fields) {
    if (const auto count = std::get<std::int64_t>(value); count != 1) {
      return invalid_argument("attribute `nbWeights` is " + std::to_string(count) +
                              "; it must be 1, because the plugin has one list of weights");
    }
  }
  const auto is_set = [&](std::string_view wanted) {
    return std::any_of(attributes.begin(), attributes.end(), [&](const NamedAttribute& given) {
      const auto* number = std::get_if<std::int64_t>(&given.value);
      return given.name == wanted && number != nullptr && *number != 0;
    });
  };
  if (!is_set("across_spatial") || is_set("channel_shared")) return {};
  for (auto& [name, value] : attributes) {
    if (name != "weights") continue;
    if (auto* factors = std::get_if<std::vector<float>>(&value)) {
      for (float& factor : *factors) factor = 1 / factor;
    }
  }
  return {};
}

/// Returns the axes from 1 up to, but not including, `end`, as a string such as "1, 2, 3".
std::string axes_from_1(int end) {
  std::string text = "1";
  for (int axis = 2; axis < end; ++axis) text += ", " + std::to_string(axis);
  return text;
}

}  // namespace

std::span<const std::int64_t> Normalize::axes(int rank) const {
  static constexpr std::array<std::int64_t, Extents::max_rank - 1> from_1{1, 2, 3, 4, 5, 6, 7};
  return std::span(from_1).first(static_cast<std::size_t>(across_spatial ? std::max(rank - 1, 1) : 1));
}

Status Normalize::check(const Problem& problem) const {
  const Extents& x = problem.inputs[0].extents;
  if (x.rank() < 2) {
    return invalid_argument("Normalize: x has rank " + std::to_string(x.rank()) + "; the rank must be between 2 and 8");
  }
  const Extents& found = problem.inputs[1].extents;
  const std::int64_t required = channel_shared ? 1 : x[1];
  if (found.rank() == 1 && found[0] == required) return {};
  return invalid_argument("Normalize: scale has shape " + to_string(found) + "; it must have " +
                          (channel_shared ? "one value, because channel_shared is 1"
                                          : "one value for each of " + std::to_string(required) +
                                                " channels, because channel_shared is 0"));
}

TensorDesc Normalize::constant(std::size_t /*port*/, std::span<const TensorDesc> given) const {
  const Extents& x = given[0].extents;
  const std::int64_t needed = channel_shared ? 1 : x.rank() > 1 ? x[1] : 0;
  return channel_values(weights, needed);
}

void Normalize::fill_constant(std::size_t /*port*/, const TensorDesc& desc, std::byte* bytes) const {
  fill_channel_values(weights, 1.F, desc, bytes);
}

std::optional<Function> Normalize::function(const FunctionInputs& inputs) const {
  if (inputs.rank < 2) return std::nullopt;
  std::string name = "Normalize_" + std::to_string(inputs.rank) + "d";
  if (across_spatial) name += "_across_spatial";
  std::string maths = "axes = Constant<value_ints=[" + axes_from_1(across_spatial ? inputs.rank : 2) +
                      "]>()\n"
                      "squares = Mul(x32, x32)\n"
                      "sum = ReduceSum<keepdims=1>(squares, axes)\n"
                      "bound = Constant<value_float=@epsilon>()\n"
                      "padded = Add(sum, bound)\n"
                      "norm = Sqrt(padded)\n";
  const bool given = inputs.count > 1;
  if (!given && weights.empty()) {
    return function_in_f32(name + "_no_scale", inputs.dtype, maths + "y32 = Div(x32, norm)");
  }
  maths += "normalized = Div(x32, norm)\n";
  if (!given) {
    name += "_weights";
    maths += "scale = Constant<value_floats=@weights>()\n";
  }
  std::string factor = "scale";
  if (channel_shared) {
    name += "_shared";
  } else if (inputs.rank > 2) {
    factor = "by_channel";
    maths += "places = Constant<value_ints=[" + axes_from_1(inputs.rank - 1) +
             "]>()\n"
             "by_channel = Unsqueeze(scale, places)\n";
  }
  return function_in_f32(name, inputs.dtype, maths + "y32 = Mul(normalized, " + factor + ")");
}

std::vector<DropIn> Normalize::drop_ins() {
  return {{.plugin_name = "Normalize_TRT",
           .version = "1",
           .fields = {{.name = "weights", .attribute = "weights", .is_required = true},
                      {"acrossSpatial", "across_spatial"},
                      {"channelShared", "channel_shared"},
                      {.name = "nbWeights",
                       .attribute = {},
                       .type = AttributeType::integer,
                       .doc = "the number of lists of weights; it must be 1",
                       .is_required = true},
                      {"eps", "epsilon"}},
           .doc = "NVIDIA's plugin of TensorRT 5 to 10, removed in 11.0; with acrossSpatial and a factor for each "
                  "channel it divides by the factors",
           .defaults = {{"epsilon", 0.F}},
           .translate = translate}};
}

}  // namespace graft::ops

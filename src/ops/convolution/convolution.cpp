// Definition of Convolution: shapes, checks, the inputs that attributes supply, and the ONNX function.
#include "ops/convolution/convolution.hpp"

#include <algorithm>
#include <stdexcept>

#include "ops/convolution/plan.hpp"
#include "ops/reference.hpp"

namespace graft::ops {
namespace {

constexpr std::size_t most_axes = ConvolutionPlan::axes;

Status refuse(std::string message) { return invalid_argument("Convolution: " + std::move(message)); }

/// Returns the number for `channel`. The list contains one number for all channels, one per channel, or none; in the
/// last case the function returns `otherwise`.
float number_for(const std::vector<float>& numbers, std::int64_t channel, float otherwise) {
  if (numbers.empty()) return otherwise;
  return numbers.size() == 1 ? numbers[0] : numbers[static_cast<std::size_t>(channel)];
}

/// Returns the pads before all axes followed by the same pads after all axes.
std::vector<std::int64_t> doubled(const std::vector<std::int64_t>& pads) {
  std::vector<std::int64_t> both = pads;
  both.insert(both.end(), pads.begin(), pads.end());
  return both;
}

/// Returns the number of spatial axes that kernel, stride and dilation imply, or 0 if all three are empty.
std::size_t axes_of_lists(const Convolution& op) {
  return std::max({op.kernel.size(), op.stride.size(), op.dilation.size()});
}

Status check_axes(const Convolution& op, std::size_t axes) {
  const auto check_list = [&](const char* name, const std::vector<std::int64_t>& list, bool twice) -> Status {
    if (list.empty() || list.size() == axes || (twice && list.size() == 2 * axes)) return {};
    return refuse("attribute `" + std::string(name) + "` is " + to_string(AttributeValue(list)) +
                  "; it must have one element for each of the " + std::to_string(axes) + " spatial axes" +
                  (twice ? ", or two" : ""));
  };
  if (Status status = check_list("kernel", op.kernel, false); !status.ok()) return status;
  if (Status status = check_list("stride", op.stride, false); !status.ok()) return status;
  if (Status status = check_list("dilation", op.dilation, false); !status.ok()) return status;
  return check_list("pad", op.pad, true);
}

}  // namespace

ConvolutionPlan plan_convolution(const Convolution& op, const Problem& problem) {
  const Extents& x = problem.inputs[Convolution::x].extents;
  const Extents& weight = problem.inputs[Convolution::weight].extents;
  const Extents& y = problem.outputs[0].extents;
  ConvolutionPlan plan{.batch = x[0], .channels = x[1], .outputs = y[1], .group = op.group, .axis = {}};
  const int axes = x.rank() - 2;
  for (int i = 0; i < axes; ++i) {
    const auto axis = static_cast<std::size_t>(i);
    plan.axis[ConvolutionPlan::axes - axes + i] = {.in = x[2 + i],
                                                   .out = y[2 + i],
                                                   .kernel = weight[2 + i],
                                                   .stride = op.stride_of(axis),
                                                   .pad = op.pad_before(axis),
                                                   .dilation = op.dilation_of(axis)};
  }
  return plan;
}

RepackedSizes RepackedSizes::of(const ConvolutionPlan& plan, DType dtype) {
  constexpr std::int64_t chunk_bytes = 16;
  constexpr std::int64_t alignment = 256;
  const auto element = static_cast<std::int64_t>(size_of(dtype));
  const auto round_up = [](std::int64_t value, std::int64_t to) { return (value + to - 1) / to * to; };
  const std::int64_t channels = round_up(plan.group_channels(), chunk_bytes / element);
  return {.group_channels = channels,
          .x_bytes = round_up(plan.batch * plan.in_pixels() * plan.group * channels * element, alignment),
          .weight_bytes = plan.outputs * plan.window() * channels * element};
}

VectorProblem::VectorProblem(const Problem& linear) : inputs{}, outputs{linear.outputs[0]} {
  std::copy_n(linear.inputs.begin(), inputs.size(), inputs.begin());
  const Layout layout = inputs[Convolution::x].dtype == DType::i8 ? Layout::chw32 : Layout::hwc8;
  for (TensorDesc* desc : {&inputs[Convolution::x], &inputs[Convolution::weight], outputs.data()}) {
    desc->layout = layout;
  }
  const auto bytes_of = [](const TensorDesc& desc) {
    constexpr std::int64_t alignment = 256;
    return (desc.storage_bytes() + alignment - 1) / alignment * alignment;
  };
  weight = bytes_of(inputs[Convolution::x]);
  y = weight + bytes_of(inputs[Convolution::weight]);
  bytes = y + bytes_of(outputs[0]);
}

std::size_t Convolution::workspace(const Problem& problem) const {
  const TensorDesc& from = problem.inputs[x];
  if (from.layout != Layout::linear || (from.dtype == DType::f32 && !allow_tf32)) return 0;
  const RepackedSizes sizes = RepackedSizes::of(plan_convolution(*this, problem), from.dtype);
  if (from.dtype == DType::f32) return static_cast<std::size_t>(sizes.x_bytes + sizes.weight_bytes);
  const VectorProblem vectors(problem);
  return std::max(static_cast<std::size_t>(sizes.x_bytes + sizes.weight_bytes),
                  static_cast<std::size_t>(vectors.bytes));
}

std::vector<Shape> Convolution::infer_shapes(std::span<const Shape> inputs) const {
  const Shape& from = inputs[x];
  if (from.size() < 3 || from.size() > 2 + most_axes) {
    throw std::invalid_argument("x has rank " + std::to_string(from.size()) + "; the rank must be between 3 and 5");
  }
  const std::size_t axes = from.size() - 2;
  if (Status status = check_axes(*this, axes); !status.ok()) throw std::invalid_argument(status.message());
  const Shape* weights = inputs.size() > weight ? &inputs[weight] : nullptr;
  if (weights != nullptr && weights->size() != from.size()) {
    throw std::invalid_argument("weight has rank " + std::to_string(weights->size()) +
                                "; it must have the rank of x, " + std::to_string(from.size()));
  }
  if (weights == nullptr && (num_output == 0 || kernel.empty())) {
    throw std::invalid_argument(
        "the input `weight` is missing, so the attributes `num_output` and `kernel` are required; connect the input, "
        "or set both attributes");
  }
  Shape to{from[0], num_output > 0 ? Dim(num_output) : (*weights)[0]};
  for (std::size_t i = 0; i < axes; ++i) {
    const Dim size = kernel.empty() ? (*weights)[2 + i] : Dim(kernel[i]);
    const Dim reach = (size - 1) * dilation_of(i) + 1;
    to.push_back(floor_div(from[2 + i] + (pad_before(i) + pad_after(i, axes)) - reach, stride_of(i)) + 1);
  }
  return {to};
}

Status Convolution::check_attributes() const {
  const std::size_t axes = axes_of_lists(*this);
  if (axes > most_axes || pad.size() > 2 * most_axes) {
    return refuse("the attributes describe " + std::to_string(std::max(axes, pad.size() / 2)) +
                  " spatial axes; 1 to 3 are supported");
  }
  if (axes > 0) {
    if (Status status = check_axes(*this, axes); !status.ok()) return status;
  }
  constexpr auto most = std::int64_t{1} << 31;  // The product of two such sizes fits into 64 bits.
  for (const auto& [name, list] : {std::pair{"kernel", &kernel}, std::pair{"stride", &stride}, std::pair{"pad", &pad},
                                   std::pair{"dilation", &dilation}}) {
    if (std::any_of(list->begin(), list->end(), [](std::int64_t number) { return number >= most; })) {
      return refuse("attribute `" + std::string(name) + "` is " + to_string(AttributeValue(*list)) +
                    "; each element must be less than 2147483648");
    }
  }
  if (num_output > 0 && num_output % group != 0) {
    return refuse("num_output is " + std::to_string(num_output) + "; it must be a multiple of group, " +
                  std::to_string(group));
  }
  return {};
}

Status Convolution::check(const Problem& problem) const {
  const Extents& from = problem.inputs[x].extents;
  const Extents& weights = problem.inputs[weight].extents;
  if (weights.rank() == 0) {
    return refuse("it has no weights; connect the input `weight`, or set the attribute `kernel_weights`");
  }
  const std::int64_t channels = from[1];
  const std::int64_t outputs = problem.outputs[0].extents[1];
  if (channels % group != 0 || outputs % group != 0) {
    return refuse("x has " + std::to_string(channels) + " channels and y has " + std::to_string(outputs) +
                  "; both must be multiples of group, " + std::to_string(group));
  }
  Extents wanted{outputs, channels / group};
  for (int i = 2; i < from.rank(); ++i) {
    wanted.push_back(kernel.empty() ? weights[i] : kernel[static_cast<std::size_t>(i - 2)]);
  }
  if (!(weights == wanted)) {
    return refuse("weight has shape " + to_string(weights) + "; it must have shape " + to_string(wanted));
  }
  for (const std::size_t port : {std::size_t{bias}, std::size_t{scale}}) {
    const Extents& found = problem.inputs[port].extents;
    if (!(found == Extents{outputs})) {
      return refuse(std::string(ports()[port].name) + " has shape " + to_string(found) + "; it must have shape " +
                    std::to_string(outputs));
    }
  }
  const auto axes = static_cast<std::size_t>(from.rank() - 2);
  for (std::size_t i = 0; i < axes; ++i) {
    const auto axis = static_cast<int>(i) + 2;
    const std::int64_t reach = (weights[axis] - 1) * dilation_of(i) + 1;
    const std::int64_t size = from[axis] + pad_before(i) + pad_after(i, axes);
    if (weights[axis] < 1 || size < reach) {
      return refuse("spatial axis " + std::to_string(i) + " of x has " + std::to_string(size) +
                    " elements with padding, and the window spans " + std::to_string(reach) +
                    "; the window must not be empty or larger than the padded axis");
    }
  }
  const std::int64_t terms = wanted.element_count() / std::max<std::int64_t>(outputs, 1);
  if (problem.inputs[x].dtype == DType::i8 && terms >= 131072) {
    return refuse("each output element is a sum of " + std::to_string(terms) +
                  " products of i8, which may exceed 32 bits; at most 131071 are supported");
  }
  if (!weight_scale.empty() && weight_scale.size() != 1 && static_cast<std::int64_t>(weight_scale.size()) != outputs) {
    return refuse("attribute `weight_scale` has " + std::to_string(weight_scale.size()) +
                  " elements; it must have 1, or one for each of the " + std::to_string(outputs) + " channels of y");
  }
  if (!bias_weights.empty() && static_cast<std::int64_t>(bias_weights.size()) != outputs) {
    return refuse("attribute `bias_weights` has " + std::to_string(bias_weights.size()) +
                  " elements; it must have one for each of the " + std::to_string(outputs) + " channels of y");
  }
  if (!kernel_weights.empty() && static_cast<std::int64_t>(kernel_weights.size()) != wanted.element_count()) {
    return refuse("attribute `kernel_weights` has " + std::to_string(kernel_weights.size()) +
                  " elements; weights of shape " + to_string(wanted) + " have " +
                  std::to_string(wanted.element_count()));
  }
  return {};
}

TensorDesc Convolution::constant(std::size_t port, std::span<const TensorDesc> given) const {
  const TensorDesc& from = given[x];
  if (port != weight) {
    const bool has_weight = given.size() > weight && given[weight].extents.rank() > 0;
    const std::int64_t outputs = num_output > 0 ? num_output : has_weight ? given[weight].extents[0] : 0;
    return {.dtype = DType::f32, .layout = Layout::linear, .extents = {outputs}};
  }
  // check() rejects a weight of rank 0.
  if (kernel_weights.empty()) return {.dtype = from.dtype, .layout = from.layout, .extents = {}};
  Extents extents{num_output, from.extents.rank() > 1 ? from.extents[1] / group : 0};
  for (const std::int64_t size : kernel) extents.push_back(size);
  return {.dtype = from.dtype, .layout = from.layout, .extents = extents};
}

void Convolution::fill_constant(std::size_t port, const TensorDesc& desc, std::byte* bytes) const {
  if (port != weight) {
    auto* numbers = reinterpret_cast<float*>(bytes);
    for (std::int64_t k = 0; k < desc.extents[0]; ++k) {
      numbers[k] = port == bias ? number_for(bias_weights, k, 0) : number_for(weight_scale, k, 1);
    }
    return;
  }
  std::fill_n(bytes, desc.storage_bytes(), std::byte{0});
  const std::int64_t vector = channels_per_vector(desc.layout);
  const std::int64_t channels = desc.extents[1];
  const std::int64_t padded = (channels + vector - 1) / vector * vector;
  std::int64_t window = 1;
  for (int i = 2; i < desc.extents.rank(); ++i) window *= desc.extents[i];
  // The dtype is one of types(), so dispatch() does not fail.
  static_cast<void>(dispatch(desc.dtype, [&](auto element) -> Status {
    using Element = decltype(element);
    auto* to = reinterpret_cast<Element*>(bytes);
    const float* from = kernel_weights.data();
    for (std::int64_t k = 0; k < desc.extents[0]; ++k) {
      const double step = desc.dtype == DType::i8 ? number_for(weight_scale, k, 1) : 1;
      for (std::int64_t c = 0; c < channels; ++c) {
        for (std::int64_t tap = 0; tap < window; ++tap) {
          std::int64_t at = (k * channels + c) * window + tap;
          if (desc.layout == Layout::hwc8) at = (k * window + tap) * padded + c;
          if (desc.layout == Layout::chw32) at = ((k * (padded / 32) + c / 32) * window + tap) * 32 + c % 32;
          to[at] = store<Element>(static_cast<double>(*from++) / step, 1);
        }
      }
    }
    return {};
  }));
}

std::optional<Function> Convolution::function(const FunctionInputs& inputs) const {
  const bool quantized = inputs.dtype == DType::i8;
  const bool has_weight = inputs.count > weight;
  std::size_t axes = axes_of_lists(*this);
  if (axes == 0 && inputs.rank > 2) axes = static_cast<std::size_t>(inputs.rank) - 2;
  if (axes == 0 && !pad.empty()) return std::nullopt;
  std::string name = std::string(Convolution::name) + (quantized ? "_i8" : "");
  std::string body;
  const auto add = [&](const std::string& line) { body += line + "\n"; };

  if (quantized) {
    add("x_step = Constant<value_float=@x_scale>()");
    add("x32 = DequantizeLinear(x, x_step)");
  } else {
    add("x32 = Cast<to=1>(x)");
  }
  const bool scale_given = inputs.count > scale;
  const bool has_scale = quantized && (scale_given || !weight_scale.empty());
  if (has_scale) {
    name += scale_given ? "_scale" : weight_scale.size() == 1 ? "_scaled_by_one" : "_scaled";
    if (scale_given) {
      add("steps = Identity(scale)");
    } else if (weight_scale.size() > 1) {
      add("steps = Constant<value_floats=@weight_scale>()");
    } else {
      add("list = Constant<value_floats=@weight_scale>()\nsteps = Squeeze(list)");
    }
  }
  if (has_weight && has_scale) {
    const bool one = !scale_given && weight_scale.size() == 1;
    add(one ? "w32 = DequantizeLinear(weight, steps)" : "w32 = DequantizeLinear<axis=0>(weight, steps)");
  } else if (has_weight) {
    add("w32 = Cast<to=1>(weight)");
  } else {
    if (kernel.empty() || num_output == 0) return std::nullopt;
    name += "_weights";
    add("numbers = Constant<value_floats=@kernel_weights>()");
    add("outputs = Constant<value_int=@num_output>()");
    add("one = Constant<value_ints=[1]>()");
    add("outputs_list = Reshape(outputs, one)");
    add("rest = Constant<value_ints=[-1]>()");
    add("window = Constant<value_ints=@kernel>()");
    add("shape = Concat<axis=0>(outputs_list, rest, window)");
    add("real = Reshape(numbers, shape)");
    if (quantized) {
      std::string shape = "-1, 1";
      for (std::size_t i = 0; i < axes; ++i) shape += ", 1";
      if (has_scale) {
        name += "_" + std::to_string(axes) + "d";
        add("step_shape = Constant<value_ints=[" + shape + "]>()\nstep = Reshape(steps, step_shape)");
      } else {
        add("step = Constant<value_float=1.0>()");
      }
      add("lowest = Constant<value_float=-128.0>()\nhighest = Constant<value_float=127.0>()");
      add("fine = Div(real, step)\nwhole = Round(fine)\nstored = Clip(whole, lowest, highest)");
      add("w32 = Mul(stored, step)");
    } else {
      add("typed = CastLike(real, x)\nw32 = Cast<to=1>(typed)");
    }
  }

  std::string bias_input;
  if (inputs.count > bias) {
    bias_input = ", bias";
    name += "_bias";
  } else if (!bias_weights.empty()) {
    add("offset = Constant<value_floats=@bias_weights>()");
    bias_input = ", offset";
    name += "_biased";
  }
  std::string attributes = "group=@group";
  if (!stride.empty()) {
    attributes += ", strides=@stride";
    name += "_strided";
  }
  if (!dilation.empty()) {
    attributes += ", dilations=@dilation";
    name += "_dilated";
  }
  if (pad.size() == 2 * axes && axes > 0) {
    attributes += ", pads=@pad";
    name += "_padded";
  } else if (!pad.empty()) {
    attributes += ", pads=" + to_string(AttributeValue(doubled(pad)));
    name += "_padded_by";
    for (const std::int64_t number : pad) name += "_" + std::to_string(number);
  }
  add("sum = Conv<" + attributes + ">(x32, w32" + bias_input + ")");
  switch (activation) {
    case Activation::none: add("y32 = Identity(sum)"); break;
    case Activation::relu: add("y32 = Relu(sum)"); break;
    case Activation::relu6:
      add("floor = Constant<value_float=0.0>()\nceiling = Constant<value_float=6.0>()\n"
          "y32 = Clip(sum, floor, ceiling)");
      break;
    case Activation::leaky_relu: add("y32 = LeakyRelu<alpha=@alpha>(sum)"); break;
  }
  for (const auto& choice : choices(activation)) {
    if (choice.value == activation && activation != Activation::none) name += "_" + std::string(choice.name);
  }
  if (quantized) {
    add("y_step = Constant<value_float=@y_scale>()\nzero = Constant<value=int8(0)>()");
    add("y = QuantizeLinear(y32, y_step, zero)");
  } else {
    add("y = CastLike(y32, x)");
  }
  return Function{name, body};
}

/// Returns one ONNX Conv node if the types are floating-point, weight is an input, and neither an activation nor
/// bias_weights are set. `kernel` must be set too, so that an operator without attributes does not match every Conv.
std::optional<std::string> Convolution::native_form(const FunctionInputs& inputs) const {
  const bool plain = activation == Activation::none && bias_weights.empty();
  const bool has_weight = inputs.count > weight && inputs.count <= scale;
  if (!is_floating_point(inputs.dtype) || !plain || !has_weight || kernel.empty()) return std::nullopt;
  std::string text = "y = Conv<group=" + std::to_string(group);
  const auto add = [&](const char* name, const std::vector<std::int64_t>& list) {
    if (!list.empty()) text += std::string(", ") + name + "=" + to_string(AttributeValue(list));
  };
  add("kernel_shape", kernel);
  add("strides", stride);
  add("dilations", dilation);
  add("pads", pad.size() == kernel.size() ? doubled(pad) : pad);
  return text + ">(x, weight" + (inputs.count > bias ? ", bias)" : ")");
}

std::vector<DropIn> Convolution::drop_ins() {
  constexpr auto translate = [](std::span<const NamedAttribute> fields, std::vector<NamedAttribute>& attributes) {
    struct Pair {
      std::string_view attribute;
      std::string_view fields[2];
      std::int64_t otherwise;
    };
    for (const auto& [attribute, names, otherwise] :
         {Pair{"kernel", {"kernel_h", "kernel_w"}, 1}, Pair{"stride", {"stride_h", "stride_w"}, 1},
          Pair{"pad", {"pad_h", "pad_w"}, 0}}) {
      std::vector<std::int64_t> values(2, otherwise);
      for (const auto& [field, value] : fields) {
        for (std::size_t i = 0; i < 2; ++i) {
          if (field == names[i]) values[i] = std::get<std::int64_t>(value);
        }
      }
      attributes.push_back({attribute, values});
    }
    return Status();
  };
  const auto number = [](std::string_view name, std::string_view doc) {
    return DropInField{.name = name, .attribute = {}, .type = AttributeType::integer, .doc = doc};
  };
  return {{.plugin_name = "CONVOLUTION",
           .version = "1",
           .fields = {{.name = "num_output", .attribute = "num_output"},
                      number("kernel_h", "height of the window"),
                      number("kernel_w", "width of the window"),
                      number("stride_h", "the vertical stride; 1 if the field is absent"),
                      number("stride_w", "the horizontal stride; 1 if the field is absent"),
                      number("pad_h", "the number of zeros above and below; 0 if the field is absent"),
                      number("pad_w", "the number of zeros left and right; 0 if the field is absent"),
                      {.name = "kernel_weights", .attribute = "kernel_weights"},
                      {.name = "bias_weights", .attribute = "bias_weights"}},
           .doc = "the plugin of hand-written networks that stores weights and bias in its fields",
           .defaults = {},
           .translate = translate}};
}

}  // namespace graft::ops

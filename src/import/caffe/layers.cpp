// Converts the layers of Caffe itself. The source of each is the layer of that name in BVLC Caffe 1.0.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <numeric>
#include <utility>

#include "graft/operator/registry.hpp"
#include "import/caffe/layer_converter.hpp"
#include "import/messages.hpp"

namespace graft::caffe {
namespace {

/// Returns a parameter, such as the stride, for each spatial axis. A layer specifies one value for all axes, one value
/// per axis, or fields that end in `_h` and `_w`; if it specifies none, the value is `otherwise`.
template <class Repeated>
Ints spatial(LayerConverter& layer, const Repeated& given, std::size_t axes, bool has_h, std::uint32_t h,
             std::uint32_t w, std::int64_t otherwise, std::string_view what) {
  if (has_h) {
    if (axes != 2)
      layer.fail(fmt::format("`{0}_h` and `{0}_w` require a bottom with 2 spatial dimensions; '{1}' has {2}", what,
                             layer.input()->name, axes));
    return {h, w};
  }
  if (given.empty()) return Ints(axes, otherwise);
  if (given.size() == 1) return Ints(axes, given[0]);
  if (static_cast<std::size_t>(given.size()) != axes) {
    layer.fail(fmt::format("`{}` has {} values; it must have 1, or {}, one for each spatial dimension",
                           what == "kernel" ? "kernel_size" : what, given.size(), axes));
  }
  return {given.begin(), given.end()};
}

void convolution(LayerConverter& layer) {
  const ConvolutionParameter& p = layer.layer().convolution_param();
  const std::size_t rank = layer.dims().size();
  if (p.axis() != 1) layer.fail(fmt::format("`axis` is {}; only `axis: 1` is supported", p.axis()));
  if (rank < 3) layer.fail(fmt::format("'{}' has {} dimensions; it must have at least 3", layer.input()->name, rank));
  const std::size_t axes = rank - 2;
  const Ints kernel = spatial(layer, p.kernel_size(), axes, p.has_kernel_h(), p.kernel_h(), p.kernel_w(), 0, "kernel");
  const Ints strides = spatial(layer, p.stride(), axes, p.has_stride_h(), p.stride_h(), p.stride_w(), 1, "stride");
  const Ints pad = spatial(layer, p.pad(), axes, p.has_pad_h() || p.has_pad_w(), p.pad_h(), p.pad_w(), 0, "pad");
  const Ints dilations = spatial(layer, p.dilation(), axes, false, 0, 0, 1, "dilation");
  layer.check_positive(kernel, "`kernel_size`");
  layer.check_positive(strides, "`stride`");
  layer.check_positive(dilations, "`dilation`");
  const std::int64_t outputs = p.num_output();
  const std::int64_t channels = layer.size(0, 1);
  const bool is_depthwise =
      layer.layer().type().ends_with("Depthwise") || layer.layer().type().starts_with("Depthwise");
  const std::int64_t group = is_depthwise ? channels : p.group();
  if (is_depthwise && p.has_group() && p.group() != channels) {
    layer.fail(fmt::format("`group` is {}; it must be the number of channels, {}", p.group(), channels));
  }
  if (group < 1 || outputs < 1 || channels % group != 0 || outputs % group != 0) {
    layer.fail(
        fmt::format("`group` is {}, with {} input channels and {} output channels (`num_output`); `group` and "
                    "`num_output` must be at least 1, and `group` must divide both numbers of channels",
                    group, channels, outputs));
  }
  const bool is_transposed = layer.layer().type() == "Deconvolution";
  Ints dims = is_transposed ? Ints{channels, outputs / group} : Ints{outputs, channels / group};
  dims.insert(dims.end(), kernel.begin(), kernel.end());
  Ints pads = pad;
  pads.insert(pads.end(), pad.begin(), pad.end());
  std::vector<onnx::Value*> inputs{layer.input(), layer.weights(0, dims, "weight")};
  if (p.bias_term()) inputs.push_back(layer.weights(1, {outputs}, "bias"));
  layer.give(layer.add(
      is_transposed ? "ConvTranspose" : "Conv", inputs,
      {{"kernel_shape", kernel}, {"strides", strides}, {"pads", pads}, {"dilations", dilations}, {"group", group}}));
}

void inner_product(LayerConverter& layer) {
  const InnerProductParameter& p = layer.layer().inner_product_param();
  const Ints dims = layer.dims();
  const std::size_t axis = layer.axis(p.axis(), dims.size());
  std::int64_t inner = 1;
  for (std::size_t i = axis; i < dims.size(); ++i) {
    if (__builtin_mul_overflow(inner, layer.size(0, i), &inner))
      layer.fail("the number of elements from `axis` on exceeds 64 bits");
  }
  const std::int64_t outputs = p.num_output();
  if (axis == 0) layer.fail("`axis` selects the batch, axis 0; it must select a later axis, as in axis: 1");
  onnx::Value* x = layer.input();
  if (axis != 1 || dims.size() != 2) x = layer.add("Flatten", {x}, {{"axis", static_cast<std::int64_t>(axis)}});
  onnx::Value* weight = layer.weights(0, p.transpose() ? Ints{inner, outputs} : Ints{outputs, inner}, "weight");
  std::vector<onnx::Value*> inputs{x, weight};
  if (p.bias_term()) inputs.push_back(layer.weights(1, {outputs}, "bias"));
  onnx::Value* y = layer.add("Gemm", inputs, {{"transB", std::int64_t{p.transpose() ? 0 : 1}}});
  if (axis != 1) {
    Ints shape(dims.begin(), dims.begin() + static_cast<std::ptrdiff_t>(axis));
    if (std::count(shape.begin(), shape.end(), -1) > 1) {
      layer.fail("more than one dimension before `axis` is dynamic, but at most one may be; " + give_shapes());
    }
    shape.push_back(outputs);
    y = layer.reshape(y, shape);
  }
  layer.give(y);
}

/// Embed(x) becomes Gather(table, x), which selects a row of the table for each index in the bottom.
void embed(LayerConverter& layer) {
  const EmbedParameter& p = layer.layer().embed_param();
  const std::int64_t outputs = p.num_output();
  onnx::Value* y =
      layer.add("Gather",
                {layer.weights(0, {p.input_dim(), outputs}, "weight"),
                 layer.add("Cast", {layer.input()}, {{"to", static_cast<std::int64_t>(onnx::ElementType::i64)}})},
                {{"axis", std::int64_t{0}}});
  if (p.bias_term()) y = layer.add("Add", {y, layer.weights(1, {outputs}, "bias")});
  layer.give(y);
}

/// Returns the number of windows that Caffe pools along an axis of `size` elements, rounded up if `up` is true. If
/// `is_padded` is true, no window begins beyond the image.
std::int64_t pooled_size(std::int64_t size, std::int64_t kernel, std::int64_t stride, std::int64_t pad, bool up,
                         bool is_padded) {
  const std::int64_t room = size + 2 * pad - kernel;
  if (room < 0) return up && room + stride > 0 ? 1 : 0;
  std::int64_t count = (up ? (room + stride - 1) / stride : room / stride) + 1;
  if (is_padded && (count - 1) * stride >= size + pad) --count;
  return count;
}

/// Returns the position of the maximum of each window as SegNet's Upsample requires it: row * width + column, in f32.
/// `kernel`, `counts` and `more` are pairs for height and width: the size of a window, the number of windows, and the
/// number of elements by which the windows exceed the bottom (negative if they do not reach its end). The windows do
/// not overlap.
onnx::Value* places_of_maxima(LayerConverter& layer, const Ints& kernel, const Ints& counts, const Ints& more) {
  const std::int64_t channels = layer.small_size(0, 1);
  const std::int64_t width = layer.small_size(0, 3);
  // Positions are stored as f32, which represents integers exactly up to this limit.
  constexpr std::int64_t most = std::int64_t{1} << 24;
  if (layer.small_size(0, 2) * width > most)
    layer.fail(
        fmt::format("it has a second top, for the indices of maxima in {} x {} elements; f32 represents such indices "
                    "exactly only up to {}",
                    layer.small_size(0, 2), width, most));
  onnx::Value* x = layer.input();
  if (more[0] > 0 || more[1] > 0) {
    x = layer.add(
        "Pad",
        {x, layer.ints_of({0, 0, 0, 0, 0, 0, std::max<std::int64_t>(more[0], 0), std::max<std::int64_t>(more[1], 0)}),
         layer.number(std::numeric_limits<float>::lowest())});
  }
  if (more[0] < 0 || more[1] < 0) {
    x = layer.add("Slice", {x, layer.ints_of({0, 0}), layer.ints_of({counts[0] * kernel[0], counts[1] * kernel[1]}),
                            layer.ints_of({2, 3})});
  }
  x = layer.reshape(x, {0, channels, counts[0], kernel[0], counts[1] * kernel[1]});
  x = layer.reshape(x, {0, channels * counts[0], kernel[0], counts[1], kernel[1]});
  x = layer.reshape(layer.transpose(x, {0, 1, 3, 2, 4}), {0, channels, counts[0], counts[1], kernel[0] * kernel[1]});
  onnx::Value* place = layer.add("ArgMax", {x}, {{"axis", std::int64_t{4}}, {"keepdims", std::int64_t{0}}});
  onnx::Value* columns = layer.ints_of({kernel[1]});
  onnx::Value* row = layer.add("Div", {place, columns});
  onnx::Value* column = layer.add("Sub", {place, layer.add("Mul", {row, columns})});
  const auto corners = [&](std::size_t axis, std::int64_t step) {
    Ints places;
    for (std::int64_t i = 0; i < counts[axis]; ++i) places.push_back(i * step);
    return layer.constant_of(
        reshaped(onnx::TensorData::from_ints(places), axis == 0 ? Ints{counts[0], 1} : Ints{1, counts[1]}));
  };
  place = layer.add("Add", {layer.add("Mul", {row, layer.ints_of({width})}), column});
  place = layer.add("Add", {layer.add("Add", {place, corners(0, kernel[0] * width)}), corners(1, kernel[1])});
  return layer.cast(place, onnx::ElementType::f32);
}

void pooling(LayerConverter& layer) {
  const PoolingParameter& p = layer.layer().pooling_param();
  const Ints dims = layer.dims();
  if (dims.size() != 4)
    layer.fail(fmt::format("'{}' has {} dimensions; it must have 4", layer.input()->name, dims.size()));
  if (p.pool() == PoolingParameter::STOCHASTIC) layer.fail("`pool` is STOCHASTIC; only MAX and AVE are supported");
  const bool is_max = p.pool() == PoolingParameter::MAX;
  const bool wants_places = layer.layer().top_size() > 1;
  if (wants_places && !is_max) layer.fail("it has a second top, for the indices of maxima, which requires `pool: MAX`");
  onnx::Value* x = layer.input();
  if (p.global_pooling()) {
    if (wants_places)
      layer.fail("it has a second top, for the indices of maxima, which Graft does not support with `global_pooling`");
    if (p.has_kernel_size() || p.has_kernel_h() || p.has_kernel_w() || p.pad() != 0 || p.pad_h() != 0 ||
        p.pad_w() != 0) {
      layer.fail(
          "it has `global_pooling` and also a kernel size or padding; delete `global_pooling`, or delete the fields "
          "`kernel_...` and `pad...`");
    }
    layer.give(layer.add(is_max ? "GlobalMaxPool" : "GlobalAveragePool", {x}));
    return;
  }
  const bool by_axis = p.has_kernel_h() || p.has_kernel_w();
  const Ints kernel = by_axis ? Ints{p.kernel_h(), p.kernel_w()} : Ints(2, p.kernel_size());
  const Ints strides = p.has_stride_h() || p.has_stride_w() ? Ints{p.stride_h(), p.stride_w()} : Ints(2, p.stride());
  const Ints pad = p.has_pad_h() || p.has_pad_w() ? Ints{p.pad_h(), p.pad_w()} : Ints(2, p.pad());
  layer.check_positive(kernel, "`kernel_size`");
  layer.check_positive(strides, "`stride`");
  const bool up = p.round_mode() == PoolingParameter::CEIL && p.ceil_mode();
  const bool is_padded = pad[0] != 0 || pad[1] != 0;
  Ints counts(2, 0);
  Ints more(2, 0);
  for (std::size_t i = 0; i < 2; ++i) {
    if (pad[i] >= kernel[i])
      layer.fail(fmt::format("`pad` is {}; it must be less than the size of the kernel, {}", pad[i], kernel[i]));
    const std::int64_t size = layer.size(0, i + 2);
    counts[i] = pooled_size(size, kernel[i], strides[i], pad[i], up, is_padded);
    if (counts[i] < 1)
      layer.fail(fmt::format("a kernel of {} does not fit into {} elements with a `pad` of {} on each side", kernel[i],
                             size, pad[i]));
    const std::int64_t last = (counts[i] - 1) * strides[i];
    if (last >= size + pad[i]) {
      layer.fail(
          fmt::format("the last window begins at {}, after the end of the {} elements, because `stride` is larger than "
                      "`kernel_size`",
                      last, size));
    }
    more[i] = last + kernel[i] - (size + 2 * pad[i]);  // Negative if no window covers some of the elements.
  }
  if (wants_places) {
    if (kernel != strides || is_padded) {
      layer.fail(
          "it has a second top, for the indices of maxima, which is supported only with a `stride` equal to "
          "`kernel_size` and a `pad` of 0");
    }
    layer.give(1, places_of_maxima(layer, kernel, counts, more));
  }
  const Attributes window{{"kernel_shape", kernel}, {"strides", strides}};
  const auto with_pads = [&](const Ints& begins, const Ints& ends) {
    Attributes attributes = window;
    attributes.emplace_back(
        "pads", Ints{begins[0], begins[1], std::max<std::int64_t>(ends[0], 0), std::max<std::int64_t>(ends[1], 0)});
    return attributes;
  };
  if (is_max) {
    layer.give(layer.add("MaxPool", {x}, with_pads(pad, {pad[0] + more[0], pad[1] + more[1]})));
    return;
  }
  // An average includes the padding, but not the elements that rounding up adds after it.
  if (more[0] <= 0 && more[1] <= 0) {
    Attributes attributes = with_pads(pad, {pad[0] + more[0], pad[1] + more[1]});
    if (is_padded) attributes.emplace_back("count_include_pad", std::int64_t{1});
    layer.give(layer.add("AveragePool", {x}, attributes));
    return;
  }
  if (is_padded) {
    x = layer.add("Pad", {x, layer.ints_of({0, 0, pad[0], pad[1], 0, 0, pad[0], pad[1]})});
  }
  layer.give(layer.add("AveragePool", {x}, with_pads({0, 0}, more)));
}

void relu(LayerConverter& layer) {
  const float slope = layer.layer().relu_param().negative_slope();
  layer.give(slope == 0 ? layer.add("Relu", {layer.input()})
                        : layer.add("LeakyRelu", {layer.input()}, {{"alpha", slope}}));
}

void prelu(LayerConverter& layer) {
  const Ints dims = layer.dims();
  const bool shared = layer.layer().prelu_param().channel_shared();
  if (dims.empty()) layer.fail(fmt::format("'{}' is a scalar; it must have at least 1 dimension", layer.input()->name));
  Ints slope{shared ? 1 : layer.size(0, 1)};
  slope.resize(dims.size() - 1, 1);
  layer.give(layer.add("PRelu", {layer.input(), layer.weights(0, slope, "slope")}));
}

void elu(LayerConverter& layer) {
  layer.give(layer.add("Elu", {layer.input()}, {{"alpha", layer.layer().elu_param().alpha()}}));
}

void sigmoid(LayerConverter& layer) { layer.give(layer.add("Sigmoid", {layer.input()})); }
void tanh_layer(LayerConverter& layer) { layer.give(layer.add("Tanh", {layer.input()})); }
void absolute(LayerConverter& layer) { layer.give(layer.add("Abs", {layer.input()})); }
/// BNLL(x) becomes Softplus(x) = log(1 + exp(x)).
void binomial_log(LayerConverter& layer) { layer.give(layer.add("Softplus", {layer.input()})); }

void clip(LayerConverter& layer) {
  const ClipParameter& p = layer.layer().clip_param();
  if (!p.has_min() || !p.has_max()) layer.fail("`min` or `max` is missing; set both");
  layer.give(layer.add("Clip", {layer.input(), layer.number(p.min()), layer.number(p.max())}));
}

/// Swish(x) becomes x * Sigmoid(beta * x).
void swish(LayerConverter& layer) {
  const float beta = layer.layer().swish_param().beta();
  onnx::Value* x = layer.input();
  onnx::Value* inner = beta == 1 ? x : layer.add("Mul", {x, layer.number(beta)});
  layer.give(layer.add("Mul", {x, layer.add("Sigmoid", {inner})}));
}

onnx::Value* scaled(LayerConverter& layer, onnx::Value* x, double scale, double shift) {
  if (scale != 1) x = layer.add("Mul", {x, layer.number(scale)});
  return shift == 0 ? x : layer.add("Add", {x, layer.number(shift)});
}

/// Power(x) becomes (shift + scale * x) ^ power.
void power(LayerConverter& layer) {
  const PowerParameter& p = layer.layer().power_param();
  onnx::Value* x = scaled(layer, layer.input(), p.scale(), p.shift());
  layer.give(p.power() == 1 ? x : layer.add("Pow", {x, layer.number(p.power())}));
}

/// Exp(x) becomes base ^ (shift + scale * x); a base of -1 stands for e.
void exponential(LayerConverter& layer) {
  const ExpParameter& p = layer.layer().exp_param();
  if (p.base() != -1 && !(p.base() > 0))
    layer.fail(fmt::format("`base` is {}; it must be above 0, or -1, which stands for e", p.base()));
  const double factor = p.base() == -1 ? 1 : std::log(static_cast<double>(p.base()));
  layer.give(layer.add("Exp", {scaled(layer, layer.input(), p.scale() * factor, p.shift() * factor)}));
}

void logarithm(LayerConverter& layer) {
  const LogParameter& p = layer.layer().log_param();
  if (p.base() != -1 && !(p.base() > 0))
    layer.fail(fmt::format("`base` is {}; it must be above 0, or -1, which stands for e", p.base()));
  const double factor = p.base() == -1 ? 1 : 1 / std::log(static_cast<double>(p.base()));
  onnx::Value* y = layer.add("Log", {scaled(layer, layer.input(), p.scale(), p.shift())});
  layer.give(scaled(layer, y, factor, 0));
}

void threshold(LayerConverter& layer) {
  onnx::Value* above = layer.add("Greater", {layer.input(), layer.number(layer.layer().threshold_param().threshold())});
  layer.give(layer.cast(above, onnx::ElementType::f32));
}

/// BatchNorm becomes BatchNormalization. Caffe stores sums of the statistics, which are divided by the number of
/// summands, the third blob.
void batch_norm(LayerConverter& layer) {
  const std::int64_t channels = layer.size(0, 1);
  const BatchNormParameter& p = layer.layer().batch_norm_param();
  if (p.has_use_global_stats() && !p.use_global_stats()) {
    layer.fail(
        "`use_global_stats` is false, which needs the statistics of a training batch; delete the field to use the "
        "trained statistics");
  }
  onnx::TensorData mean = layer.blob(0);
  onnx::TensorData variance = layer.blob(1);
  const double count = layer.blob(2).scalar().value_or(0);
  const double factor = count == 0 ? 0 : 1 / count;
  const auto statistic = [&](const onnx::TensorData& sums, const char* what) {
    std::vector<double> numbers = sums.numbers().value();
    if (static_cast<std::int64_t>(numbers.size()) != channels) {
      layer.fail(fmt::format("the blob of the {} has {} values; it must have one for each of the {} channels", what,
                             numbers.size(), channels));
    }
    for (double& each : numbers) each *= factor;
    return layer.constant_of(onnx::TensorData::from_numbers(onnx::ElementType::f32, {channels}, numbers));
  };
  const auto filled = [&](double value) {
    return layer.constant_of(onnx::TensorData::from_numbers(
        onnx::ElementType::f32, {channels}, std::vector<double>(static_cast<std::size_t>(channels), value)));
  };
  // The trained blobs are read first, because they prove that there are as many channels as the shape claims.
  onnx::Value* means = statistic(mean, "mean");
  onnx::Value* variances = statistic(variance, "variance");
  onnx::Value* factor_of = p.scale_bias() ? layer.weights(3, {channels}, "scale") : filled(1);
  onnx::Value* shift = p.scale_bias() ? layer.weights(4, {channels}, "bias") : filled(0);
  layer.give(
      layer.add("BatchNormalization", {layer.input(), factor_of, shift, means, variances}, {{"epsilon", p.eps()}}));
}

/// Returns the shape of a constant (the weights of Scale, for example) that broadcasts to bottom 0. It has `count`
/// dimensions of bottom 0 from axis `given_axis` on (all of them if `count` is negative), and then a dimension of 1 for
/// each remaining axis. A negative `given_axis` counts from the end; `axis` is set to the same axis counted from the
/// front.
Ints broadcast_shape(LayerConverter& layer, std::int64_t given_axis, std::int64_t count, std::size_t& axis) {
  const Ints dims = layer.dims();
  axis = layer.axis(given_axis, dims.size());
  const std::size_t end = count < 0 ? dims.size() : axis + static_cast<std::size_t>(count);
  if (end > dims.size())
    layer.fail(fmt::format("`num_axes` is {}, but the first bottom has only {} dimensions from axis {} on", count,
                           dims.size() - axis, axis));
  Ints shape;
  for (std::size_t i = axis; i < end; ++i) shape.push_back(layer.size(0, i));
  shape.resize(dims.size() - axis, 1);
  return shape;
}

onnx::Value* second_bottom(LayerConverter& layer, std::int64_t given_axis) {
  const std::size_t rank = layer.dims().size();
  const std::size_t axis = layer.axis(given_axis, rank);
  Ints shape = layer.dims(1);
  if (axis + shape.size() > rank) layer.fail("the second bottom has more dimensions than the first one from `axis` on");
  if (axis + shape.size() == rank) return layer.input(1);
  Ints axes(rank - axis - shape.size());
  std::iota(axes.begin(), axes.end(), static_cast<std::int64_t>(shape.size()));
  return layer.add("Unsqueeze", {layer.input(1), layer.ints_of(axes)});
}

void scale(LayerConverter& layer) {
  const ScaleParameter& p = layer.layer().scale_param();
  std::size_t axis = 0;
  if (layer.input_count() > 1) {
    onnx::Value* y = layer.add("Mul", {layer.input(0), second_bottom(layer, p.axis())});
    if (p.bias_term()) {
      Ints shape = layer.dims(1);
      shape.resize(layer.dims().size() - layer.axis(p.axis(), layer.dims().size()), 1);
      y = layer.add("Add", {y, layer.weights(0, shape, "bias")});
    }
    layer.give(y);
    return;
  }
  const Ints shape = broadcast_shape(layer, p.axis(), p.num_axes(), axis);
  onnx::Value* y = layer.add("Mul", {layer.input(), layer.weights(0, shape, "scale")});
  if (p.bias_term()) y = layer.add("Add", {y, layer.weights(1, shape, "bias")});
  layer.give(y);
}

void bias(LayerConverter& layer) {
  const BiasParameter& p = layer.layer().bias_param();
  std::size_t axis = 0;
  if (layer.input_count() > 1) {
    layer.give(layer.add("Add", {layer.input(0), second_bottom(layer, p.axis())}));
    return;
  }
  const Ints shape = broadcast_shape(layer, p.axis(), p.num_axes(), axis);
  layer.give(layer.add("Add", {layer.input(), layer.weights(0, shape, "bias")}));
}

void eltwise(LayerConverter& layer) {
  const EltwiseParameter& p = layer.layer().eltwise_param();
  if (p.coeff_size() != 0 && static_cast<std::size_t>(p.coeff_size()) != layer.input_count()) {
    layer.fail(fmt::format("`coeff` has {} values for {} bottoms; it must have one for each bottom", p.coeff_size(),
                           layer.input_count()));
  }
  if (p.coeff_size() != 0 && p.operation() != EltwiseParameter::SUM)
    layer.fail("it has `coeff`, which requires `operation: SUM`");
  const std::string op = p.operation() == EltwiseParameter::PROD  ? "Mul"
                         : p.operation() == EltwiseParameter::SUM ? "Add"
                                                                  : "Max";
  onnx::Value* y = nullptr;
  for (std::size_t i = 0; i < layer.input_count(); ++i) {
    onnx::Value* x = layer.input(i);
    if (layer.dims(i) != layer.dims(0)) {
      layer.fail(fmt::format("'{}' has the shape [{}] and '{}' [{}]; the shapes must be equal", x->name,
                             fmt::join(layer.dims(i), ", "), layer.input(0)->name, fmt::join(layer.dims(0), ", ")));
    }
    if (p.coeff_size() != 0) x = scaled(layer, x, p.coeff(static_cast<int>(i)), 0);
    y = y == nullptr ? x : layer.add(op, {y, x});
  }
  if (y == nullptr) layer.fail("it has no bottom; it needs at least 1");
  layer.give(y);
}

void concatenate(LayerConverter& layer) {
  const ConcatParameter& p = layer.layer().concat_param();
  const std::int64_t axis = p.has_concat_dim() ? p.concat_dim() : p.axis();
  std::vector<onnx::Value*> inputs;
  for (std::size_t i = 0; i < layer.input_count(); ++i) inputs.push_back(layer.input(i));
  if (inputs.empty()) layer.fail("it has no bottom; it needs at least 1");
  layer.give(inputs.size() == 1 ? inputs[0] : layer.add("Concat", inputs, {{"axis", axis}}));
}

void slice(LayerConverter& layer) {
  const SliceParameter& p = layer.layer().slice_param();
  const std::size_t rank = layer.dims().size();
  const std::size_t axis = layer.axis(p.has_slice_dim() ? static_cast<std::int64_t>(p.slice_dim()) : p.axis(), rank);
  const std::int64_t size = layer.size(0, axis);
  const auto tops = static_cast<std::int64_t>(layer.layer().top_size());
  Ints sizes;
  if (p.slice_point_size() != 0) {
    if (p.slice_point_size() != tops - 1)
      layer.fail(fmt::format("`slice_point` has {} values for {} tops; it must have {}, one less than there are tops",
                             p.slice_point_size(), tops, tops - 1));
    std::int64_t last = 0;
    for (const std::uint32_t point : p.slice_point()) {
      sizes.push_back(static_cast<std::int64_t>(point) - last);
      last = point;
    }
    sizes.push_back(size - last);
  } else {
    if (tops == 0 || size % tops != 0)
      layer.fail(fmt::format("the {} elements of axis {} cannot be split equally into {} tops; set `slice_point`", size,
                             axis, tops));
    sizes.assign(static_cast<std::size_t>(tops), size / tops);
  }
  layer.check_positive(sizes, "the sizes of the tops, which `slice_point` determines,");
  const auto parts = layer.add_many("Split", {layer.input(), layer.ints_of(sizes)}, sizes.size(),
                                    {{"axis", static_cast<std::int64_t>(axis)}});
  for (std::size_t i = 0; i < parts.size(); ++i) layer.give(i, parts[i]);
}

/// Split(x) disappears: each of its tops is replaced with the bottom.
void split(LayerConverter& layer) {
  layer.give(layer.input());
  for (int i = 0; i < layer.layer().top_size(); ++i) layer.give(static_cast<std::size_t>(i), layer.input());
}

/// Dropout disappears from a deployed network, except for its scaling if training did not scale the values (scale_train
/// is false).
void dropout(LayerConverter& layer) {
  const DropoutParameter& p = layer.layer().dropout_param();
  if (p.sample_weights_test()) {
    layer.fail(
        "`sample_weights_test` is true, which drops values at random during inference; delete the field for a "
        "deterministic network");
  }
  layer.give(scaled(layer, layer.input(), p.scale_train() ? 1 : 1 - static_cast<double>(p.dropout_ratio()), 0));
}

/// LRN normalizes across channels (ONNX's LRN), or over a window within each channel (AveragePool of x * x).
void local_response_norm(LayerConverter& layer) {
  const LRNParameter& p = layer.layer().lrn_param();
  const std::int64_t size = p.local_size();
  if (size % 2 != 1) layer.fail(fmt::format("`local_size` is {}; it must be odd", size));
  onnx::Value* x = layer.input();
  if (p.norm_region() == LRNParameter::ACROSS_CHANNELS) {
    layer.give(layer.add("LRN", {x}, {{"size", size}, {"alpha", p.alpha()}, {"beta", p.beta()}, {"bias", p.k()}}));
    return;
  }
  const std::int64_t pad = (size - 1) / 2;
  onnx::Value* mean = layer.add(
      "AveragePool", {layer.add("Mul", {x, x})},
      {{"kernel_shape", Ints{size, size}}, {"pads", Ints{pad, pad, pad, pad}}, {"count_include_pad", std::int64_t{1}}});
  onnx::Value* base = scaled(layer, mean, p.alpha(), 1);
  layer.give(layer.add("Mul", {x, layer.add("Pow", {base, layer.number(-static_cast<double>(p.beta()))})}));
}

void softmax(LayerConverter& layer) {
  const auto axis = static_cast<std::int64_t>(layer.axis(layer.layer().softmax_param().axis(), layer.dims().size()));
  layer.give(layer.add("Softmax", {layer.input()}, {{"axis", axis}}));
}

void flatten(LayerConverter& layer) {
  const FlattenParameter& p = layer.layer().flatten_param();
  const Ints dims = layer.dims();
  const std::size_t begin = layer.axis(p.axis(), dims.size());
  const std::size_t end = layer.axis(p.end_axis(), dims.size());
  if (begin == 1 && end == dims.size() - 1) {
    layer.give(layer.add("Flatten", {layer.input()}));
    return;
  }
  Ints shape(begin, 0);  // 0 keeps the size of the input
  shape.push_back(-1);
  for (std::size_t i = end + 1; i < dims.size(); ++i) shape.push_back(layer.size(0, i));
  layer.give(layer.reshape(layer.input(), shape));
}

void reshape(LayerConverter& layer) {
  const ReshapeParameter& p = layer.layer().reshape_param();
  const Ints dims = layer.dims();
  const auto rank = static_cast<std::int64_t>(dims.size());
  const std::int64_t begin = p.axis() < 0 ? p.axis() + rank + 1 : p.axis();
  const std::int64_t end = p.num_axes() < 0 ? rank : begin + p.num_axes();
  if (begin < 0 || begin > rank || end > rank)
    layer.fail(fmt::format("`axis` {} and `num_axes` {} are out of range, because the bottom has {} dimensions",
                           p.axis(), p.num_axes(), rank));
  Ints shape;
  const auto keep = [&](std::int64_t i) {
    const std::int64_t size = dims[static_cast<std::size_t>(i)];
    const bool in_place = static_cast<std::int64_t>(shape.size()) == i;
    if (size < 0 && !in_place) {
      layer.fail("it moves a dynamic dimension to another axis; " + give_shapes());
    }
    shape.push_back(size < 0 ? 0 : size);
  };
  for (std::int64_t i = 0; i < begin; ++i) keep(i);
  for (int i = 0; i < p.shape().dim_size(); ++i) {
    const std::int64_t dim = p.shape().dim(i);
    if (dim < -1) layer.fail(fmt::format("`shape` has the dimension {}; every dimension must be at least -1", dim));
    if (dim == 0) {
      if (begin + i >= rank) {
        layer.fail(fmt::format(
            "`shape` has a 0, which keeps the size of the bottom, for axis {}; the bottom has only {} dimensions",
            begin + i, rank));
      }
      keep(begin + i);
    } else {
      shape.push_back(dim);
    }
  }
  for (std::int64_t i = end; i < rank; ++i) keep(i);
  layer.give(layer.reshape(layer.input(), shape));
}

void crop(LayerConverter& layer) {
  const CropParameter& p = layer.layer().crop_param();
  const Ints dims = layer.dims();
  const std::size_t first = layer.axis(p.axis(), dims.size());
  if (p.offset_size() > 1 && static_cast<std::size_t>(p.offset_size()) != dims.size() - first) {
    layer.fail(fmt::format("`offset` has {} values; it must have none, 1, or {}, one for each cropped dimension",
                           p.offset_size(), dims.size() - first));
  }
  Ints begins;
  Ints ends;
  Ints axes;
  for (std::size_t axis = first; axis < dims.size(); ++axis) {
    const int place = p.offset_size() == 1 ? 0 : static_cast<int>(axis - first);
    const std::int64_t offset = p.offset_size() == 0 ? 0 : p.offset(place);
    const std::int64_t size = layer.size(1, axis);
    if (dims[axis] >= 0 && offset + size > dims[axis]) {
      layer.fail(fmt::format("on axis {}, {} elements from `offset` {} on exceed the size {} of the first bottom", axis,
                             size, offset, dims[axis]));
    }
    begins.push_back(offset);
    ends.push_back(offset + size);
    axes.push_back(static_cast<std::int64_t>(axis));
  }
  layer.give(layer.add("Slice", {layer.input(), layer.ints_of(begins), layer.ints_of(ends), layer.ints_of(axes)}));
}

void pyramid(LayerConverter& layer) {
  const SPPParameter& p = layer.layer().spp_param();
  if (p.pool() == SPPParameter::STOCHASTIC) layer.fail("`pool` is STOCHASTIC; only MAX and AVE are supported");
  constexpr std::uint32_t most = 10;
  if (p.pyramid_height() < 1 || p.pyramid_height() > most) {
    layer.fail(fmt::format("`pyramid_height` is {}; it must be between 1 and {}", p.pyramid_height(), most));
  }
  Ints levels;
  for (std::uint32_t i = 0; i < p.pyramid_height(); ++i) levels.push_back(std::int64_t{1} << i);
  const auto op = find_operator("SpatialPyramidPooling")->create();
  layer.set(*op, "levels", levels);
  layer.set(*op, "mode", std::string(p.pool() == SPPParameter::MAX ? "max" : "average"));
  layer.set(*op, "binning", std::string("caffe"));
  layer.give(layer.add_operator(*op, {layer.input()}));
}

/// MVN(x) becomes (x - mean) / (deviation + epsilon).
void mean_variance(LayerConverter& layer) {
  const MVNParameter& p = layer.layer().mvn_param();
  const std::size_t rank = layer.dims().size();
  const std::size_t first = p.across_channels() ? 1 : 2;
  if (rank <= first)
    layer.fail(fmt::format("'{}' has {} dimensions; it must have at least {}", layer.input()->name, rank, first + 1));
  Ints axes;
  for (std::size_t i = first; i < rank; ++i) axes.push_back(static_cast<std::int64_t>(i));
  onnx::Value* x = layer.input();
  onnx::Value* centered = layer.add("Sub", {x, layer.add("ReduceMean", {x}, {{"axes", axes}})});
  if (!p.normalize_variance()) {
    layer.give(centered);
    return;
  }
  onnx::Value* variance = layer.add("ReduceMean", {layer.add("Mul", {centered, centered})}, {{"axes", axes}});
  layer.give(layer.add("Div", {centered, layer.add("Add", {layer.add("Sqrt", {variance}), layer.number(p.eps())})}));
}

void reduction(LayerConverter& layer) {
  const ReductionParameter& p = layer.layer().reduction_param();
  const std::size_t rank = layer.dims().size();
  const std::size_t first = layer.axis(p.axis(), rank);
  Ints axes;
  for (std::size_t i = first; i < rank; ++i) axes.push_back(static_cast<std::int64_t>(i));
  onnx::Value* x = layer.input();
  const std::int64_t none = 0;
  onnx::Value* y = nullptr;
  switch (p.operation()) {
    case ReductionParameter::SUM: y = layer.add("ReduceSum", {x, layer.ints_of(axes)}, {{"keepdims", none}}); break;
    case ReductionParameter::ASUM: y = layer.add("ReduceL1", {x}, {{"axes", axes}, {"keepdims", none}}); break;
    case ReductionParameter::SUMSQ: y = layer.add("ReduceSumSquare", {x}, {{"axes", axes}, {"keepdims", none}}); break;
    case ReductionParameter::MEAN: y = layer.add("ReduceMean", {x}, {{"axes", axes}, {"keepdims", none}}); break;
  }
  layer.give(scaled(layer, y, p.coeff(), 0));
}

/// Returns the values and positions of the k largest elements, as f32 like Caffe's blobs. Of equal values Caffe places
/// the last one first, and TopK the first one, so TopK runs on the reversed axis.
std::pair<onnx::Value*, onnx::Value*> last_largest(LayerConverter& layer, onnx::Value* x, std::int64_t axis,
                                                   std::int64_t k) {
  onnx::Value* reversed =
      layer.add("Slice", {x, layer.ints_of({-1}), layer.ints_of({std::numeric_limits<std::int64_t>::min()}),
                          layer.ints_of({axis}), layer.ints_of({-1})});
  const auto best = layer.add_many("TopK", {reversed, layer.ints_of({k})}, 2, {{"axis", axis}});
  onnx::Value* size = layer.slice_1d(layer.shape_of(x), axis, axis + 1);
  if (const auto known = layer.ints_in(size)) size = layer.ints_of(*known);
  onnx::Value* last = layer.add("Sub", {size, layer.ints_of({1})});
  return {best[0], layer.cast(layer.add("Sub", {last, best[1]}), onnx::ElementType::f32)};
}

void arg_max(LayerConverter& layer) {
  const ArgMaxParameter& p = layer.layer().argmax_param();
  onnx::Value* x = layer.input();
  layer.check_positive({p.top_k()}, "`top_k`");
  const auto axis = p.has_axis() ? static_cast<std::int64_t>(layer.axis(p.axis(), layer.dims().size())) : 1;
  if (p.top_k() == 1 && p.has_axis() && !p.out_max_val()) {
    onnx::Value* place = layer.add("ArgMax", {x}, {{"axis", axis}, {"select_last_index", std::int64_t{1}}});
    layer.give(layer.cast(place, onnx::ElementType::f32));
    return;
  }
  if (!p.has_axis()) x = layer.add("Flatten", {x});
  const auto [values, places] = last_largest(layer, x, axis, p.top_k());
  if (p.has_axis()) {
    layer.give(p.out_max_val() ? values : places);
    return;
  }
  Ints ones{1};  // [n, 1, k], with as many dimensions as the bottom has
  for (std::size_t i = 3; i < layer.dims().size(); ++i) ones.push_back(static_cast<std::int64_t>(i));
  onnx::Value* all_places = layer.add("Unsqueeze", {places, layer.ints_of(ones)});
  if (!p.out_max_val()) {
    layer.give(all_places);
    return;
  }
  onnx::Value* all_values = layer.add("Unsqueeze", {values, layer.ints_of(ones)});
  layer.give(layer.add("Concat", {all_places, all_values}, {{"axis", std::int64_t{1}}}));
}

void tile(LayerConverter& layer) {
  const TileParameter& p = layer.layer().tile_param();
  const std::size_t rank = layer.dims().size();
  Ints repeats(rank, 1);
  layer.check_positive({p.tiles()}, "`tiles`");
  repeats[layer.axis(p.axis(), rank)] = p.tiles();
  layer.give(layer.add("Tile", {layer.input(), layer.ints_of(repeats)}));
}

constexpr std::array general_entries = {
    LayerEntry{"AbsVal", absolute},
    LayerEntry{"ArgMax", arg_max, 0, "argmax_param", "Indices have type f32."},
    LayerEntry{"BNLL", binomial_log},
    LayerEntry{"BatchNorm", batch_norm, 3, "batch_norm_param",
               "`use_global_stats: false` is refused, because it needs the statistics of a training batch."},
    LayerEntry{"Bias", bias, 0, "bias_param"},
    LayerEntry{"Clip", clip, 0, "clip_param", "`min` and `max` are required."},
    LayerEntry{"Concat", concatenate, 0, "concat_param"},
    LayerEntry{"Convolution", convolution, 1, "convolution_param", "Any `axis` but 1 is refused."},
    LayerEntry{"ConvolutionDepthwise", convolution, 1, "convolution_param", "Every channel is a group of its own."},
    LayerEntry{"Crop", crop, 0, "crop_param"},
    LayerEntry{"Deconvolution", convolution, 1, "convolution_param", "Any `axis` but 1 is refused."},
    LayerEntry{"DepthwiseConvolution", convolution, 1, "convolution_param", "Every channel is a group of its own."},
    LayerEntry{"Dropout", dropout, 0, "dropout_param",
               "Is removed, unless `scale_train: false` requires scaling at inference. `sample_weights_test: true` is "
               "refused."},
    LayerEntry{"ELU", elu, 0, "elu_param"},
    LayerEntry{"Eltwise", eltwise, 0, "eltwise_param"},
    LayerEntry{"Embed", embed, 1, "embed_param"},
    LayerEntry{"Exp", exponential, 0, "exp_param"},
    LayerEntry{"Flatten", flatten, 0, "flatten_param"},
    LayerEntry{"InnerProduct", inner_product, 1, "inner_product_param", "An `axis` of 0 is refused."},
    LayerEntry{"LRN", local_response_norm, 0, "lrn_param", "`local_size` has to be odd, as in Caffe."},
    LayerEntry{"Log", logarithm, 0, "log_param"},
    LayerEntry{"MVN", mean_variance, 0, "mvn_param"},
    LayerEntry{"PReLU", prelu, 1, "prelu_param"},
    LayerEntry{"Pooling", pooling, 0, "pooling_param",
               "Output sizes are rounded up by default, as in Caffe. `pool: STOCHASTIC` is refused. A second top, with "
               "the indices of the maxima, needs windows without overlap and padding."},
    LayerEntry{"Power", power, 0, "power_param"},
    LayerEntry{"ReLU", relu, 0, "relu_param"},
    LayerEntry{"Reduction", reduction, 0, "reduction_param"},
    LayerEntry{"Reshape", reshape, 0, "reshape_param"},
    LayerEntry{"SPP", pyramid, 0, "spp_param",
               "`pool: STOCHASTIC` and more than 10 levels are refused. Becomes Graft's SpatialPyramidPooling."},
    LayerEntry{"Scale", scale, 0, "scale_param"},
    LayerEntry{"Sigmoid", sigmoid},
    LayerEntry{"Slice", slice, 0, "slice_param"},
    LayerEntry{"Softmax", softmax, 0, "softmax_param"},
    LayerEntry{"SoftmaxWithLoss", softmax, 0, "softmax_param",
               "Only the softmax is converted; the label and the loss are removed."},
    LayerEntry{"Split", split},
    LayerEntry{"Swish", swish, 0, "swish_param"},
    LayerEntry{"TanH", tanh_layer},
    LayerEntry{"Threshold", threshold, 0, "threshold_param"},
    LayerEntry{"Tile", tile, 0, "tile_param"},
};

}  // namespace

std::span<const LayerEntry> layer_entries() { return general_entries; }

}  // namespace graft::caffe

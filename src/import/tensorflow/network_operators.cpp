// Converts convolutions, pooling, normalizations, activations and resizing.
//
// TensorFlow keeps channels last (NHWC) by default, whereas ONNX keeps them second. Each operator is converted to
// Transpose -> operator -> Transpose; the passes move and cancel the Transposes.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <stdexcept>

#include "graft/error.hpp"
#include "import/messages.hpp"
#include "import/tensorflow/node_converter.hpp"
#include "import/tensorflow/products.hpp"
#include "import/tensorflow/size_difference.hpp"

namespace graft::tensorflow {
namespace {

/// The largest size of an axis, a window or a stride. Products of two such sizes, and sums of such products, fit in 64
/// bits.
constexpr std::int64_t largest_size = std::int64_t{1} << 31;

/// The position of the channels in a tensor, and the permutations between channels last and channels second.
class ChannelOrder {
 public:
  ChannelOrder(const NodeConverter& node, std::size_t rank) : rank_(rank) {
    if (rank < 3) node.fail(fmt::format("the input has {} dimensions; it must have at least 3", rank));
    const std::string format = node.text_or("data_format", rank == 5 ? "NDHWC" : "NHWC");
    is_last_ = format == "NHWC" || format == "NDHWC" || format == "NWC";
    if (!is_last_ && format != "NCHW" && format != "NCDHW" && format != "NCW") {
      node.fail(fmt::format("attribute `data_format` is {}; it must be NWC, NCW, NHWC, NCHW, NDHWC or NCDHW", format));
    }
  }

  [[nodiscard]] bool is_last() const { return is_last_; }

  onnx::Value* to_second(NodeConverter& node, onnx::Value* value) const {
    return is_last_ ? node.transpose(value, permutation(true)) : value;
  }
  onnx::Value* back(NodeConverter& node, onnx::Value* value) const {
    return is_last_ ? node.transpose(value, permutation(false)) : value;
  }
  /// Returns the entries for the spatial axes from `all`, a list with one entry per axis. Throws Error naming the
  /// attribute `what` if the list has another length.
  [[nodiscard]] Ints spatial(const NodeConverter& node, const Ints& all, std::string_view what) const {
    if (all.size() != rank_) {
      node.fail(fmt::format("attribute `{}` has {} elements; it must have {}", what, all.size(), rank_));
    }
    const auto first = static_cast<std::ptrdiff_t>(is_last_ ? 1 : 2);
    const auto count = static_cast<std::ptrdiff_t>(rank_ - 2);
    return {all.begin() + first, all.begin() + first + count};
  }

 private:
  [[nodiscard]] Ints permutation(bool to_second) const {
    Ints result(rank_);
    for (std::size_t i = 0; i < rank_; ++i) result[i] = static_cast<std::int64_t>(i);
    if (to_second) {
      std::rotate(result.begin() + 1, result.end() - 1, result.end());
    } else {
      std::rotate(result.begin() + 1, result.begin() + 2, result.end());
    }
    return result;
  }

  std::size_t rank_;
  bool is_last_ = true;
};

/// Returns the spatial sizes of a tensor with channels second; nothing if one of them is unknown.
std::optional<Ints> spatial_sizes(const onnx::Value& value) {
  if (!value.shape) return std::nullopt;
  Ints result;
  for (std::size_t i = 2; i < value.shape->size(); ++i) {
    if (!(*value.shape)[i].is_constant()) return std::nullopt;
    if ((*value.shape)[i].value() > largest_size) {
      throw Error(fmt::format("a dimension of '{}' is {}; it may be at most {}", value.name, (*value.shape)[i].value(),
                              largest_size));
    }
    result.push_back((*value.shape)[i].value());
  }
  return result;
}

/// Adds ONNX's attributes for the padding of windows of the sizes `kernel` to `attributes`. If SAME requires an odd
/// number of pads, the additional one is at the end. The pads are written as numbers if the sizes are known, otherwise
/// as auto_pad.
void add_padding(const NodeConverter& node, const ChannelOrder& order, const onnx::Value& x, const Ints& kernel,
                 const Ints& strides, const Ints& dilations, Attributes& attributes) {
  const std::string padding = node.text_or("padding", "VALID");
  if (padding == "VALID") return;
  Ints begins;
  Ints ends;
  if (padding == "EXPLICIT") {
    const Ints all = node.ints_or("explicit_paddings", {});
    const std::size_t rank = kernel.size() + 2;
    if (all.size() != rank * 2) {
      node.fail(fmt::format("attribute `explicit_paddings` has {} elements; it must have {}", all.size(), rank * 2));
    }
    const std::size_t first = order.is_last() ? 1 : 2;
    for (std::size_t i = first; i < first + kernel.size(); ++i) {
      begins.push_back(all[2 * i]);
      ends.push_back(all[2 * i + 1]);
    }
  } else if (padding == "SAME") {
    for (std::size_t i = 0; i < kernel.size(); ++i) {
      const std::int64_t reach = (kernel[i] - 1) * dilations[i] + 1;
      // For a stride of 1 the padding is the same for every size. A window of one element needs none.
      std::int64_t total = reach - 1;
      if (strides[i] != 1 && reach != 1) {
        const bool is_known = x.shape && x.shape->size() == kernel.size() + 2 && (*x.shape)[i + 2].is_constant();
        if (!is_known) {
          attributes.emplace_back("auto_pad", std::string("SAME_UPPER"));
          return;
        }
        const std::int64_t size = (*x.shape)[i + 2].value();
        const std::int64_t outputs = (size + strides[i] - 1) / strides[i];
        total = std::max<std::int64_t>((outputs - 1) * strides[i] + reach - size, 0);
      }
      begins.push_back(total / 2);
      ends.push_back(total - total / 2);
    }
  } else {
    node.fail(fmt::format("attribute `padding` is {}; it must be SAME, VALID or EXPLICIT", padding));
  }
  begins.insert(begins.end(), ends.begin(), ends.end());
  if (std::any_of(begins.begin(), begins.end(), [](std::int64_t pad) { return pad != 0; })) {
    attributes.emplace_back("pads", begins);
  }
}

void check_positive(const NodeConverter& node, const Ints& numbers, std::string_view what) {
  for (const std::int64_t number : numbers) {
    if (number < 1 || number > largest_size) {
      node.fail(fmt::format("{} must be between 1 and 2^31; found [{}]", what, fmt::join(numbers, ", ")));
    }
  }
}

/// Returns the dimensions of a filter, input `i`, without loading its data.
Ints filter_dims(const NodeConverter& node, std::size_t i, std::size_t rank) {
  const onnx::Value* filter = node.input(i);
  Ints dims;
  if (filter->shape) {
    for (const Dim& dim : *filter->shape) dims.push_back(dim.is_constant() ? dim.value() : -1);
  }
  if (dims.size() != rank) {
    node.fail(fmt::format("the filter '{}' has {} dimensions; it must have {}", filter->name, dims.size(), rank));
  }
  check_positive(node, dims, "the filter's shape");
  return dims;
}

/// Returns the permutation of a filter with `rank` dimensions from [k..., in, out] to [out, in, k...], where k are the
/// spatial sizes.
Ints filter_permutation(std::size_t rank) {
  Ints result{static_cast<std::int64_t>(rank) - 1, static_cast<std::int64_t>(rank) - 2};
  for (std::size_t i = 0; i + 2 < rank; ++i) result.push_back(static_cast<std::int64_t>(i));
  return result;
}

}  // namespace

onnx::Value* convolved(NodeConverter& node) {
  const std::size_t rank = node.op().ends_with("Conv3D") ? 5 : 4;
  const ChannelOrder order(node, rank);
  const Ints dims = filter_dims(node, 1, rank);
  const Ints kernel(dims.begin(), dims.end() - 2);
  const Ints strides = order.spatial(node, node.ints_or("strides", Ints(rank, 1)), "strides");
  const Ints dilations = order.spatial(node, node.ints_or("dilations", Ints(rank, 1)), "dilations");
  check_positive(node, strides, "`strides`");
  check_positive(node, dilations, "`dilations`");
  onnx::Value* x = order.to_second(node, node.input(0));
  std::int64_t group = 1;
  if (x->shape && x->shape->size() == rank && (*x->shape)[1].is_constant()) {
    const std::int64_t channels = (*x->shape)[1].value();
    const std::int64_t each = dims[rank - 2];
    if (channels % each != 0) {
      node.fail(fmt::format("the {} channels of the input are not divisible by the {} input channels of the filter",
                            channels, each));
    }
    group = channels / each;
  }
  Attributes attributes{{"kernel_shape", kernel}, {"strides", strides}, {"dilations", dilations}, {"group", group}};
  add_padding(node, order, *x, kernel, strides, dilations, attributes);
  onnx::Value* filter = node.transpose(node.input(1), filter_permutation(rank));
  return order.back(node, node.add("Conv", {x, filter}, attributes));
}

onnx::Value* depthwise_convolved(NodeConverter& node) {
  const ChannelOrder order(node, 4);
  const Ints dims = filter_dims(node, 1, 4);  // [h, w, channels, multiplier]
  const Ints kernel(dims.begin(), dims.end() - 2);
  const Ints strides = order.spatial(node, node.ints_or("strides", Ints(4, 1)), "strides");
  const Ints dilations = order.spatial(node, node.ints_or("dilations", Ints(4, 1)), "dilations");
  check_positive(node, strides, "`strides`");
  check_positive(node, dilations, "`dilations`");
  onnx::Value* x = order.to_second(node, node.input(0));
  Attributes attributes{{"kernel_shape", kernel}, {"strides", strides}, {"dilations", dilations}, {"group", dims[2]}};
  add_padding(node, order, *x, kernel, strides, dilations, attributes);
  onnx::Value* filter = node.reshape(node.input(1), {dims[0], dims[1], 1, dims[2] * dims[3]});
  filter = node.transpose(filter, filter_permutation(4));
  return order.back(node, node.add("Conv", {x, filter}, attributes));
}

/// Returns the normalized tensor of a FusedBatchNorm. With `is_training` the statistics of the batch are used, as in a
/// network that was frozen in training mode.
onnx::Value* normalized(NodeConverter& node) {
  const ChannelOrder order(node, node.rank(node.input(0)).value_or(4));
  const float epsilon = node.float_or("epsilon", 1e-4F);
  onnx::Value* x = order.to_second(node, node.input(0));
  if (!node.flag_or("is_training", true)) {
    onnx::Value* y = node.add("BatchNormalization", {x, node.input(1), node.input(2), node.input(3), node.input(4)},
                              {{"epsilon", epsilon}});
    return order.back(node, y);
  }
  Ints axes{0};
  Ints dims{-1};
  const std::size_t rank = node.known_rank(x, "its statistics are computed over all axes except one");
  for (std::size_t i = 2; i < rank; ++i) {
    axes.push_back(static_cast<std::int64_t>(i));
    dims.push_back(1);
  }
  onnx::Value* mean = node.add("ReduceMean", {x}, {{"axes", axes}});
  onnx::Value* difference = node.add("Sub", {x, mean});
  onnx::Value* variance = node.add("ReduceMean", {node.add("Mul", {difference, difference})}, {{"axes", axes}});
  onnx::Value* root = node.add("Sqrt", {node.add("Add", {variance, node.scalar_of(epsilon, node.type(0))})});
  onnx::Value* y = node.add("Mul", {node.add("Div", {difference, root}), node.reshape(node.input(1), dims)});
  return order.back(node, node.add("Add", {y, node.reshape(node.input(2), dims)}));
}

namespace {

void convolution(NodeConverter& node) { node.give(convolved(node)); }

void depthwise_convolution(NodeConverter& node) { node.give(depthwise_convolved(node)); }

/// Returns (size - 1) * stride + reach - result: the number of elements by which `size` windows of `reach` elements,
/// `stride` elements apart, exceed an axis of `result` elements. Returns nothing if that number depends on dynamic
/// dimensions.
std::optional<std::int64_t> surplus_of(const Dim& size, std::int64_t stride, std::int64_t reach, const Dim& result) {
  try {
    return constant_difference((size - 1) * stride + reach, result);
  } catch (const std::overflow_error&) {
    return std::nullopt;
  }
}

/// The pads, the added elements and the cut that give the result of a transposed convolution its size along an axis.
struct Extent {
  std::int64_t pad_begin = 0;
  std::int64_t pad_end = 0;
  std::int64_t extra = 0;  ///< Elements that are added at the end.
  /// Whether the result is cut to its size when the network runs, because its size is dynamic.
  bool is_cut = false;
  /// Whether elements are also cut off at the begin. Their number depends on the dynamic size.
  bool is_shifted = false;
};

/// Returns the Extent for a result whose size is computed when the network runs. `reach` is the size of the dilated
/// kernel in elements. With SAME (`is_same`), TensorFlow requires that the input has ceil(result / stride) elements, so
/// that between `reach` - `stride` and `reach` - 1 elements are cut off.
Extent computed_extent(std::int64_t stride, std::int64_t reach, bool is_same) {
  if (!is_same) return {.extra = stride - 1, .is_cut = true};
  const std::int64_t fewest = std::max<std::int64_t>(reach - stride, 0) / 2;
  const std::int64_t most = (reach - 1) / 2;
  const std::int64_t extra = std::max<std::int64_t>(stride - reach, 0);
  if (fewest == most) return {.pad_begin = fewest, .extra = extra, .is_cut = true};
  return {.extra = extra, .is_cut = true, .is_shifted = true};
}

/// Cuts `y`, the result of a transposed convolution with the channels in axis 1, to the size in input 0 along each axis
/// whose Extent has `is_cut`. `is_last` states that input 0 has the channels in its last element.
onnx::Value* cut_to_size(NodeConverter& node, onnx::Value* y, const std::vector<Extent>& extents, bool is_last) {
  std::vector<onnx::Value*> begins;
  std::vector<onnx::Value*> ends;
  Ints axes;
  onnx::Value* wanted = node.as_i64(0);
  onnx::Value* full = node.shape_of(y);
  for (std::size_t i = 0; i < extents.size(); ++i) {
    if (!extents[i].is_cut) continue;
    const auto axis = static_cast<std::int64_t>(i) + 2;
    onnx::Value* size = node.slice_1d(wanted, is_last ? axis - 1 : axis, is_last ? axis : axis + 1);
    onnx::Value* begin = node.ints_of({0});
    onnx::Value* end = size;
    if (extents[i].is_shifted) {
      onnx::Value* surplus = node.add("Sub", {node.slice_1d(full, axis, axis + 1), size});
      surplus = node.add("Max", {node.add("Sub", {surplus, node.ints_of({extents[i].extra})}), node.ints_of({0})});
      begin = node.add("Div", {surplus, node.ints_of({2})});
      end = node.add("Add", {begin, size});
    }
    begins.push_back(begin);
    ends.push_back(end);
    axes.push_back(axis);
  }
  const auto joined = [&](const std::vector<onnx::Value*>& parts) {
    return parts.size() == 1 ? parts[0] : node.concat(parts);
  };
  onnx::Value* cut = node.add("Slice", {y, joined(begins), joined(ends), node.ints_of(axes)});
  const auto sizes = node.dims_in(node.input(0));
  if (sizes && sizes->size() == extents.size() + 2 && cut->shape) {
    for (const std::int64_t axis : axes) {
      (*cut->shape)[static_cast<std::size_t>(axis)] = (*sizes)[static_cast<std::size_t>(is_last ? axis - 1 : axis)];
    }
  }
  return cut;
}

/// Conv2DBackpropInput(sizes of the result, filter, x) becomes ConvTranspose(x, filter). If a size of the result is
/// computed in a way that does not follow from the size of x, the result is cut when the network runs.
void transposed_convolution(NodeConverter& node) {
  const std::size_t rank = node.op() == "Conv2DBackpropInput" ? 4 : 5;
  const ChannelOrder order(node, rank);
  const Ints dims = filter_dims(node, 1, rank);  // [k..., out, in]
  const Ints kernel(dims.begin(), dims.end() - 2);
  const Ints strides = order.spatial(node, node.ints_or("strides", Ints(rank, 1)), "strides");
  const Ints dilations = order.spatial(node, node.ints_or("dilations", Ints(rank, 1)), "dilations");
  check_positive(node, strides, "`strides`");
  check_positive(node, dilations, "`dilations`");
  onnx::Value* x = order.to_second(node, node.input(2));
  const auto wanted = node.dims_in(node.input(0));
  if (wanted && wanted->size() != rank) {
    node.fail(fmt::format("the size of its result (input 0, '{}') has {} elements; it must have {}",
                          node.input(0)->name, wanted->size(), rank));
  }
  const bool is_known = wanted && x->shape && x->shape->size() == rank;
  const bool is_same = node.text_or("padding", "VALID") == "SAME";
  if (node.text_or("padding", "VALID") == "EXPLICIT")
    node.fail("attribute `padding` is EXPLICIT; only SAME and VALID are supported");
  std::vector<Extent> extents;
  for (std::size_t i = 0; i < kernel.size(); ++i) {
    const std::int64_t reach = (kernel[i] - 1) * dilations[i] + 1;
    if (!is_known) {
      extents.push_back(computed_extent(strides[i], reach, is_same));
      continue;
    }
    // The forward convolution, of which this node is the gradient, maps `result` elements to `size` elements.
    const Dim& result = (*wanted)[order.is_last() ? i + 1 : i + 2];
    const Dim& size = (*x->shape)[i + 2];
    if (size.is_constant()) check_positive(node, {size.value()}, "the shape of its input");
    const auto surplus = surplus_of(size, strides[i], reach, result);
    if (!surplus) {
      extents.push_back(computed_extent(strides[i], reach, is_same));
      continue;
    }
    const std::int64_t total = is_same ? std::max<std::int64_t>(*surplus, 0) : 0;
    const std::int64_t more = total - std::max(*surplus, -2 * largest_size);
    if (more < 0 || more >= std::max(strides[i], dilations[i])) {
      node.fail(
          fmt::format("a result of {} elements along an axis cannot be computed from {} elements with a kernel of {} "
                      "and a stride of {}",
                      result.to_string(), size.to_string(), kernel[i], strides[i]));
    }
    extents.push_back({.pad_begin = total / 2, .pad_end = total - total / 2, .extra = more});
  }
  Ints pads;
  Ints extra;
  for (const Extent& extent : extents) pads.push_back(extent.pad_begin);
  for (const Extent& extent : extents) pads.push_back(extent.pad_end);
  for (const Extent& extent : extents) extra.push_back(extent.extra);
  Attributes attributes{{"kernel_shape", kernel}, {"strides", strides}, {"dilations", dilations}, {"pads", pads}};
  // TensorRT's parser refuses `output_padding` for dynamic sizes. These elements are 0.
  const bool is_static = spatial_sizes(*x).has_value();
  if (is_static) attributes.emplace_back("output_padding", extra);
  onnx::Value* filter = node.transpose(node.input(1), filter_permutation(rank));  // [in, out, k...]
  onnx::Value* y = node.add("ConvTranspose", {x, filter}, attributes);
  if (!is_static && std::any_of(extra.begin(), extra.end(), [](std::int64_t count) { return count > 0; })) {
    Ints all(rank + 2, 0);
    all.insert(all.end(), extra.begin(), extra.end());
    y = node.add("Pad", {y, node.ints_of(all)});
  }
  if (std::any_of(extents.begin(), extents.end(), [](const Extent& extent) { return extent.is_cut; })) {
    y = cut_to_size(node, y, extents, order.is_last());
  }
  node.give(order.back(node, y));
}

void bias_add(NodeConverter& node) {
  onnx::Value* x = node.input(0);
  onnx::Value* bias = node.input(1);
  const std::string format = node.text_or("data_format", "NHWC");
  if (format.starts_with("NC")) {
    const std::size_t rank = node.known_rank(x, "the bias is added along its second axis");
    if (rank < 2) node.fail(fmt::format("'{}' has {} dimensions; it must have at least 2", x->name, rank));
    Ints dims{-1};
    dims.resize(rank - 1, 1);
    if (bias->shape && bias->shape->size() == 1 && (*bias->shape)[0].is_constant()) dims[0] = (*bias->shape)[0].value();
    bias = node.reshape(bias, dims);
  }
  node.give(node.add("Add", {x, bias}));
}

void batch_norm(NodeConverter& node) {
  node.give(0, normalized(node));
  if (node.flag_or("is_training", true)) return;
  node.give(1, node.input(3));
  node.give(2, node.input(4));
}

void pool(NodeConverter& node) {
  const std::size_t rank = node.op().ends_with("3D") ? 5 : 4;
  const ChannelOrder order(node, rank);
  const bool has_inputs = node.op() == "MaxPoolV2";
  const Ints window = has_inputs ? node.known_ints(1, "the window") : node.ints_or("ksize", {});
  const Ints steps = has_inputs ? node.known_ints(2, "the stride") : node.ints_or("strides", {});
  const Ints kernel = order.spatial(node, window, "ksize");
  const Ints strides = order.spatial(node, steps, "strides");
  check_positive(node, kernel, "`ksize`");
  check_positive(node, strides, "`strides`");
  const std::size_t channels = order.is_last() ? rank - 1 : 1;
  if (window[0] != 1 || window[channels] != 1) {
    node.fail(fmt::format(
        "`ksize` is [{}], which pools over the batch or the channels; the window must be 1 along these axes",
        fmt::join(window, ", ")));
  }
  onnx::Value* x = order.to_second(node, node.input(0));
  Attributes attributes{{"kernel_shape", kernel}, {"strides", strides}};
  add_padding(node, order, *x, kernel, strides, Ints(kernel.size(), 1), attributes);
  onnx::Value* y = node.add(node.op().starts_with("Max") ? "MaxPool" : "AveragePool", {x}, attributes);
  node.give(order.back(node, y));
}

/// MaxPoolWithArgmax becomes MaxPool with indices. ONNX counts the indices through channels and rows (NCHW), TensorFlow
/// through rows and channels (NHWC), so they are converted.
void max_pool_with_places(NodeConverter& node) {
  const Ints window = node.ints_or("ksize", {});
  const Ints steps = node.ints_or("strides", {});
  const ChannelOrder order(node, 4);
  const Ints kernel = order.spatial(node, window, "ksize");
  const Ints strides = order.spatial(node, steps, "strides");
  check_positive(node, kernel, "`ksize`");
  check_positive(node, strides, "`strides`");
  onnx::Value* x = order.to_second(node, node.input(0));
  const auto sizes = spatial_sizes(*x);
  if (!sizes || !(*x->shape)[1].is_constant()) {
    node.fail("the shape of its input is dynamic; " + give_shapes());
  }
  Attributes attributes{{"kernel_shape", kernel}, {"strides", strides}};
  add_padding(node, order, *x, kernel, strides, Ints(2, 1), attributes);
  const auto results = node.add_many("MaxPool", {x}, 2, attributes);
  results[1]->type = onnx::ElementType::i64;
  results[1]->shape = results[0]->shape;
  const auto number = [&](std::int64_t value) {
    return node.scalar_of(static_cast<double>(value), onnx::ElementType::i64);
  };
  onnx::Value* plane = number((Dim((*sizes)[0]) * (*sizes)[1]).value());
  onnx::Value* channels = number((*x->shape)[1].value());
  onnx::Value* planes_before = node.add("Div", {results[1], plane});
  onnx::Value* channel = node.add("Mod", {planes_before, channels});
  onnx::Value* pixel = node.add("Mod", {results[1], plane});
  if (node.flag_or("include_batch_in_index", false)) {
    onnx::Value* image = node.add("Div", {planes_before, channels});
    pixel = node.add("Add", {pixel, node.add("Mul", {image, plane})});
  }
  onnx::Value* place = node.add("Add", {node.add("Mul", {pixel, channels}), channel});
  node.give(0, order.back(node, results[0]));
  node.give(1, node.cast(order.back(node, place), node.type_or("Targmax", onnx::ElementType::i64)));
}

void local_response_norm(NodeConverter& node) {
  const std::int64_t radius = node.int_or("depth_radius", 5);
  if (radius < 0 || radius > largest_size)
    node.fail(fmt::format("attribute `depth_radius` is {}; it must be between 0 and {}", radius, largest_size));
  const std::int64_t size = 2 * radius + 1;
  onnx::Value* x = node.transpose(node.input(0), {0, 3, 1, 2});
  onnx::Value* y = node.add("LRN", {x},
                            {{"size", size},
                             {"alpha", node.float_or("alpha", 1) * static_cast<float>(size)},
                             {"beta", node.float_or("beta", 0.5F)},
                             {"bias", node.float_or("bias", 1)}});
  node.give(node.transpose(y, {0, 2, 3, 1}));
}

/// Returns the attributes for ONNX's Resize. They follow TensorFlow's kernels, image_resizer_state.h and
/// resize_*_op.cc.
Attributes resize_attributes(const NodeConverter& node) {
  const bool corners = node.flag_or("align_corners", false);
  const bool half = node.flag_or("half_pixel_centers", false);
  const std::string coordinates = corners ? "align_corners" : half ? "half_pixel" : "asymmetric";
  if (node.op() == "ResizeNearestNeighbor") {
    // With aligned corners TensorFlow rounds half away from zero, otherwise down. Its half-pixel position floor((i +
    // 0.5) / scale) equals ONNX's half_pixel position with round_prefer_ceil: floor((i + 0.5) / scale - 0.5 + 0.5).
    return {{"mode", std::string("nearest")},
            {"coordinate_transformation_mode", coordinates},
            {"nearest_mode", std::string(corners || half ? "round_prefer_ceil" : "floor")}};
  }
  if (node.op() == "ResizeBilinear") {
    return {{"mode", std::string("linear")}, {"coordinate_transformation_mode", coordinates}};
  }
  Attributes cubic{{"mode", std::string("cubic")},
                   {"coordinate_transformation_mode", coordinates},
                   {"cubic_coeff_a", half ? -0.5F : -0.75F}};
  if (half) cubic.emplace_back("exclude_outside", std::int64_t{1});
  return cubic;
}

void resize(NodeConverter& node) {
  if (node.flag_or("align_corners", false) && node.flag_or("half_pixel_centers", false)) {
    node.fail("both `align_corners` and `half_pixel_centers` are true; at most one of them may be");
  }
  // Bilinear and bicubic results are f32 whatever the type of the images is, and are not rounded.
  const bool is_nearest = node.op() == "ResizeNearestNeighbor";
  onnx::Value* images = is_nearest ? node.input(0) : node.cast(node.input(0), onnx::ElementType::f32);
  onnx::Value* x = node.transpose(images, {0, 3, 1, 2});
  onnx::Value* outer = node.slice_1d(node.shape_of(x), 0, 2);
  const auto wanted = node.ints(1);
  const auto sizes = spatial_sizes(*x);
  onnx::Value* y = nullptr;
  const bool is_whole = wanted && sizes && wanted->size() == 2 && (*sizes)[0] > 0 && (*sizes)[1] > 0 &&
                        (*wanted)[0] % (*sizes)[0] == 0 && (*wanted)[1] % (*sizes)[1] == 0;
  if (is_whole) {
    const std::int64_t height_factor = (*wanted)[0] / (*sizes)[0];
    const std::int64_t width_factor = (*wanted)[1] / (*sizes)[1];
    const std::vector<float> scales{1, 1, static_cast<float>(height_factor), static_cast<float>(width_factor)};
    y = node.add("Resize", {x, nullptr, node.constant_of(onnx::TensorData::from_floats(scales))},
                 resize_attributes(node));
  } else {
    onnx::Value* spatial = wanted ? node.ints_of(*wanted) : node.as_i64(1);
    y = node.add("Resize", {x, nullptr, nullptr, node.concat({outer, spatial})}, resize_attributes(node));
  }
  node.give(node.transpose(y, {0, 2, 3, 1}));
}

void softmax(NodeConverter& node) {
  node.give(node.add(node.op() == "Softmax" ? "Softmax" : "LogSoftmax", {node.input(0)}, {{"axis", std::int64_t{-1}}}));
}

void space_and_depth(NodeConverter& node) {
  const ChannelOrder order(node, 4);
  const std::int64_t block = node.int_or("block_size", 2);
  check_positive(node, {block}, "`block_size`");
  onnx::Value* x = order.to_second(node, node.input(0));
  node.give(order.back(node, node.add(node.op(), {x}, {{"blocksize", block}})));
}

void leaky_relu(NodeConverter& node) {
  node.give(node.add("LeakyRelu", {node.input(0)}, {{"alpha", node.float_or("alpha", 0.2F)}}));
}

void relu6(NodeConverter& node) {
  const onnx::ElementType type = node.type(0);
  node.give(node.add("Clip", {node.input(0), node.scalar_of(0, type), node.scalar_of(6, type)}));
}

void activation(NodeConverter& node) { node.give(node.add(node.op(), {node.input(0)})); }

}  // namespace

OperatorEntries network_operators() {
  static const std::vector<OperatorEntry> entries =
      entries_of({{pool, "AvgPool AvgPool3D MaxPool MaxPool3D MaxPoolV2"},
                  {bias_add, "BiasAdd BiasAddV1"},
                  {convolution, "Conv2D Conv3D"},
                  {transposed_convolution, "Conv2DBackpropInput Conv3DBackpropInputV2"},
                  {space_and_depth, "DepthToSpace SpaceToDepth"},
                  {depthwise_convolution, "DepthwiseConv2dNative"},
                  {activation, "Elu Relu Selu Sigmoid Softplus Softsign Tanh"},
                  {batch_norm, "FusedBatchNorm FusedBatchNormV2 FusedBatchNormV3"},
                  {local_response_norm, "LRN"},
                  {leaky_relu, "LeakyRelu"},
                  {softmax, "LogSoftmax Softmax"},
                  {max_pool_with_places, "MaxPoolWithArgmax"},
                  {relu6, "Relu6"},
                  {resize, "ResizeBicubic ResizeBilinear ResizeNearestNeighbor"}});
  return entries;
}

}  // namespace graft::tensorflow

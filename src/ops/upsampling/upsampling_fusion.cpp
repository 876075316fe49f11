// Pass fuse_upsampling:
//   nodes that repeat each element of x in its place    becomes  Upsampling(x, mode=nearest)
//   ConvTranspose(x, bilinear weights)                  becomes  Slice(Upsampling(Pad(x), mode=linear))
//   Resize(x) in a form that TensorRT refuses           becomes  Upsampling(x)
//
// A Resize that TensorRT runs itself stays unless plugins are requested.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "graft/operator/registry.hpp"
#include "onnx/matcher.hpp"
#include "onnx/operator_node.hpp"
#include "passes/fuse.hpp"
#include "passes/layout/movement.hpp"
#include "passes/operator_fusion.hpp"
#include "passes/pipeline.hpp"

namespace graft::passes {
namespace {

constexpr std::size_t first_spatial = 2;
constexpr std::size_t least_rank = 3;
constexpr std::size_t most_rank = 5;

struct Made {
  std::shared_ptr<Operator> op;
  std::string obstacle;
};

Made make_upsampling(std::vector<NamedAttribute> attributes) {
  std::shared_ptr<Operator> op = find_operator("Upsampling")->create();
  if (const Status status = op->set(attributes); !status.ok()) return {nullptr, status.message()};
  return {std::move(op), ""};
}

// ---- Repeated elements

/// Returns how often each element of the axis is repeated next to itself in all runs of the nodes; nothing if the
/// number differs or the axis changes in another way.
std::optional<std::int64_t> factor_of(const std::vector<AxisMaps>& runs, std::size_t axis) {
  std::optional<std::int64_t> factor;
  for (const AxisMaps& run : runs) {
    const std::int64_t n = run.x_dims[axis];
    const auto count = static_cast<std::int64_t>(run.axes[axis].size());
    if (n == 0 || count % n != 0) return std::nullopt;
    const std::int64_t here = count / n;
    if (factor && *factor != here) return std::nullopt;
    factor = here;
    for (std::int64_t i = 0; i < count; ++i) {
      if (run.axes[axis][static_cast<std::size_t>(i)] != i / here) return std::nullopt;
    }
  }
  return factor;
}

/// Returns a message about an axis whose elements are not repeated next to themselves.
std::string describe_obstacle(const AxisMaps& run, std::size_t axis) {
  const std::vector<std::int64_t>& map = run.axes[axis];
  const std::size_t shown = std::min<std::size_t>(map.size(), 12);
  return fmt::format("axis {} of {} elements becomes [{}{}]; upsampling repeats each element next to itself", axis,
                     run.x_dims[axis], fmt::join(map.begin(), map.begin() + static_cast<std::ptrdiff_t>(shown), ", "),
                     shown < map.size() ? ", ..." : "");
}

onnx::Node* add_transpose(onnx::Graph& graph, onnx::Value* x, const std::vector<std::int64_t>& permutation,
                          onnx::Node* before) {
  onnx::Node* node = graph.add_node("Transpose", {x}, {x->name + "_transposed"}, before);
  node->attributes["perm"] = onnx::NodeAttribute(onnx::AttributeData(permutation));
  return node;
}

/// Returns the permutation from N, C, spatial to N, spatial, C for tensors of this rank; channels_first() returns its
/// inverse.
std::vector<std::int64_t> channels_last(std::size_t rank) {
  std::vector<std::int64_t> permutation{0};
  for (std::size_t axis = first_spatial; axis < rank; ++axis) permutation.push_back(static_cast<std::int64_t>(axis));
  permutation.push_back(1);
  return permutation;
}
std::vector<std::int64_t> channels_first(std::size_t rank) {
  std::vector<std::int64_t> permutation{0, static_cast<std::int64_t>(rank - 1)};
  for (std::size_t axis = 1; axis + 1 < rank; ++axis) permutation.push_back(static_cast<std::int64_t>(axis));
  return permutation;
}

/// Returns a function that replaces the node that computes `output` with the operator between two Transpose nodes, for
/// tensors whose channels are the last axis.
std::function<void(onnx::Graph&)> channels_last_edit(std::shared_ptr<const Operator> op, std::string input,
                                                     std::string output) {
  return [op = std::move(op), input = std::move(input), output = std::move(output)](onnx::Graph& graph) {
    onnx::Value* y = graph.find(output);
    onnx::Node* old = y->producer;
    const auto rank = static_cast<std::size_t>(y->rank().value());
    onnx::Node* before = add_transpose(graph, graph.find(input), channels_first(rank), old);
    onnx::Node* node = add_operator_node(graph, *op, {before->output()}, {output + "_channels_first"}, old);
    node->name = old->name;
    onnx::Node* after = add_transpose(graph, node->output(), channels_last(rank), old);
    graph.move_output(*old, y->output_index, *after, 0);
  };
}

MovementFusion read_movement(Rewriter& rewriter, const Movement& movement, const std::vector<AxisMaps>& runs) {
  const std::size_t rank = runs[0].axes.size();
  if (rank < least_rank || rank > most_rank) return {};
  std::vector<std::int64_t> factors;
  for (std::size_t axis = 0; axis < rank; ++axis) {
    const auto factor = factor_of(runs, axis);
    if (!factor) return MovementFusion::none(describe_obstacle(runs[0], axis));
    factors.push_back(*factor);
  }
  const bool is_first = factors[0] == 1 && factors[1] == 1;
  const bool is_last = rank > least_rank && factors[0] == 1 && factors.back() == 1 &&
                       std::all_of(factors.begin() + 1, factors.end() - 1, [](std::int64_t f) { return f > 1; });
  if (!is_first && !is_last) {
    return MovementFusion::none(
        fmt::format("the axes are repeated [{}] times; upsampling repeats only the axes after batch and channels",
                    fmt::join(factors, ", ")));
  }
  std::vector<float> scales;
  for (std::size_t i = 0; i + first_spatial < rank; ++i) {
    scales.push_back(static_cast<float>(factors[i + (is_first ? first_spatial : 1)]));
  }
  const Made made = make_upsampling({{"mode", std::string("nearest")},
                                     {"scales", scales},
                                     {"coordinate_mode", std::string("asymmetric")},
                                     {"nearest_mode", std::string("floor")}});
  if (!made.op) return MovementFusion::none(made.obstacle);
  if (!is_wanted(rewriter, *made.op, *movement.x, *movement.y)) return {};
  return {.edit = is_first ? operator_edit(made.op, {movement.x->name}, movement.y->name)
                           : channels_last_edit(made.op, movement.x->name, movement.y->name),
          .replacement = to_text(*made.op) + (is_first ? "" : " between two transpositions"),
          .why = fmt::format("{} nodes repeat every element [{}] times next to itself", movement.nodes.size(),
                             fmt::join(scales, ", ")),
          .obstacle = ""};
}

// ---- Deconvolution with fixed weights

/// The weights of a deconvolution along one axis, in terms of the factor f.
enum class Kernel {
  repeat,          ///< A window of f ones, which repeats elements: nearest.
  linear_even,     ///< 2f weights that decrease linearly from the middle, with f even: half_pixel.
  linear_centered  ///< 2f - 1 weights that decrease linearly from 1 in the middle: asymmetric.
};

/// Returns the weight at index i of a kernel with `size` weights: 1 for Kernel::repeat, otherwise
/// 1 - |i - (size - 1) / 2| / factor.
double expected_weight(Kernel kernel, std::int64_t size, std::int64_t factor, std::int64_t i) {
  if (kernel == Kernel::repeat) return 1;
  const double middle = static_cast<double>(size - 1) / 2;
  return 1 - std::abs(static_cast<double>(i) - middle) / static_cast<double>(factor);
}

std::optional<Kernel> kernel_of(std::int64_t size, std::int64_t factor) {
  if (factor < 2) return std::nullopt;
  if (size == factor) return Kernel::repeat;
  if (size == 2 * factor && factor % 2 == 0) return Kernel::linear_even;
  if (size == 2 * factor - 1) return Kernel::linear_centered;
  return std::nullopt;
}

struct Deconvolution {
  std::vector<std::int64_t> factors;
  std::vector<std::int64_t> sizes;
  /// The number of elements at the beginning of each axis that the node removes from the full result.
  std::vector<std::int64_t> begins;
  /// The number of elements at the end of each axis that the node removes; negative if it adds output_padding.
  std::vector<std::int64_t> ends;
  Kernel kernel = Kernel::repeat;
  std::string obstacle;
};

/// Returns the largest difference between the weights of a deconvolution and those of the interpolation. Unless
/// `is_grouped`, the weights connect all pairs of channels, and those between different channels must be 0.
double largest_difference(const std::vector<double>& weights, std::int64_t channels, bool is_grouped,
                          const Deconvolution& found) {
  std::int64_t taps = 1;
  for (const std::int64_t size : found.sizes) taps *= size;
  const std::int64_t outputs = is_grouped ? 1 : channels;
  double worst = 0;
  std::size_t at = 0;
  for (std::int64_t from = 0; from < channels; ++from) {
    for (std::int64_t to = 0; to < outputs; ++to) {
      for (std::int64_t tap = 0; tap < taps; ++tap, ++at) {
        double expected = is_grouped || from == to ? 1 : 0;
        std::int64_t rest = tap;
        for (std::size_t axis = found.sizes.size(); axis-- > 0;) {
          expected *= expected_weight(found.kernel, found.sizes[axis], found.factors[axis], rest % found.sizes[axis]);
          rest /= found.sizes[axis];
        }
        worst = std::max(worst, std::abs(weights[at] - expected));
      }
    }
  }
  return worst;
}

std::vector<std::int64_t> ints_or(const onnx::Node& node, std::string_view attribute, std::size_t count,
                                  std::int64_t value) {
  return node.ints(attribute).value_or(std::vector<std::int64_t>(count, value));
}

/// Returns the largest error that rounding to the type `type` can cause in a weight of about 1.
double step_of(onnx::ElementType type) {
  if (type == onnx::ElementType::f16) return 1e-3;
  if (type == onnx::ElementType::bf16) return 8e-3;
  return 1e-6;
}

Deconvolution read_deconvolution(const onnx::Node& node, const onnx::TensorData& weight) {
  Deconvolution found;
  const auto fail = [&](std::string why) {
    found.obstacle = std::move(why);
    return found;
  };
  const std::size_t spatial = weight.dims.size() - first_spatial;
  const std::int64_t channels = weight.dims[0];
  const std::int64_t group = node.int_or("group", 1);
  const bool is_grouped = group == channels && weight.dims[1] == 1;
  if (!is_grouped && !(group == 1 && weight.dims[1] == channels)) {
    return fail(fmt::format("{} channels become {} in {} groups; each channel must be resampled separately", channels,
                            weight.dims[1] * group, group));
  }
  if (ints_or(node, "dilations", spatial, 1) != std::vector<std::int64_t>(spatial, 1))
    return fail("it is dilated; the dilation must be 1");
  if (node.string_or("auto_pad", "NOTSET") != "NOTSET" || node.attribute("output_shape") != nullptr) {
    return fail(
        "its pads are computed from its output size (auto_pad or output_shape); the pattern needs explicit pads");
  }
  found.factors = ints_or(node, "strides", spatial, 1);
  found.sizes.assign(weight.dims.begin() + first_spatial, weight.dims.end());
  const auto pads = ints_or(node, "pads", 2 * spatial, 0);
  const auto more = ints_or(node, "output_padding", spatial, 0);
  std::optional<Kernel> kernel;
  for (std::size_t axis = 0; axis < spatial; ++axis) {
    const auto here = kernel_of(found.sizes[axis], found.factors[axis]);
    if (!here || (kernel && *here != *kernel)) {
      return fail(
          fmt::format("a kernel of [{}] with stride [{}] is not an interpolation; a linear kernel has 2 f or 2 f - 1 "
                      "elements for stride f",
                      fmt::join(found.sizes, ", "), fmt::join(found.factors, ", ")));
    }
    kernel = here;
    found.begins.push_back(pads[axis]);
    found.ends.push_back(pads[axis + spatial] - more[axis]);
  }
  found.kernel = *kernel;
  const auto numbers = weight.numbers();
  const double worst = numbers ? largest_difference(*numbers, channels, is_grouped, found) : 1;
  if (worst > step_of(weight.type)) {
    return fail(fmt::format("the weights differ from the weights of {} by up to {:.2g}",
                            found.kernel == Kernel::repeat ? "a repetition" : "linear interpolation", worst));
  }
  if (const onnx::Value* bias = node.input(2)) {
    const auto constant = bias->constant();
    const auto values = constant ? constant->numbers() : std::nullopt;
    if (!values || std::any_of(values->begin(), values->end(), [](double b) { return b != 0; })) {
      return fail("it has a bias, which Upsampling does not support");
    }
  }
  return found;
}

/// The numbers of elements that are removed at the beginning and the end of each spatial axis from the interpolation of
/// x, which is padded with one zero on each side.
struct Crop {
  std::vector<std::int64_t> begins;
  std::vector<std::int64_t> ends;
};

/// Returns the elements to remove, so that the interpolation of the padded x is the result of the deconvolution. A
/// deconvolution reads nothing from outside x, as if x were surrounded by zeros, whereas an interpolation repeats the
/// elements at the edge.
///
/// Pad, Upsampling and Slice replace the one layer, because on an H200 cuDNN's deconvolution took 8 to 60 times as long
/// as a copy of its result (PyTorch 2.11, factors 2, 4 and 8, f32 and f16, one group and as many groups as channels).
/// With one zero on each side, element i of x lies at f (i + 1) + (f - 1) / 2 of the result (asymmetric: at f (i + 1)),
/// and in the full deconvolution at f i + (size - 1) / 2.
Crop crop_of(const Deconvolution& found) {
  Crop crop;
  for (std::size_t axis = 0; axis < found.factors.size(); ++axis) {
    const std::int64_t f = found.factors[axis];
    const std::int64_t size = found.sizes[axis];
    if (found.kernel == Kernel::repeat) {  // This kernel reads no neighbors, so x is not padded with zeros.
      crop.begins.push_back(found.begins[axis]);
      crop.ends.push_back(found.ends[axis]);
      continue;
    }
    const std::int64_t begin = (found.kernel == Kernel::linear_even ? f / 2 : 1) + found.begins[axis];
    // The result has f (n + 2) elements, of which f (n - 1) + size - begins - ends are kept.
    crop.begins.push_back(begin);
    crop.ends.push_back(3 * f - size - begin + found.begins[axis] + found.ends[axis]);
  }
  return crop;
}

std::function<void(onnx::Graph&)> deconvolution_edit(std::shared_ptr<const Operator> op, bool with_zeros, Crop crop,
                                                     std::string input, std::string output) {
  return [op = std::move(op), with_zeros, crop = std::move(crop), input = std::move(input),
          output = std::move(output)](onnx::Graph& graph) {
    onnx::Value* y = graph.find(output);
    onnx::Node* old = y->producer;
    onnx::Value* x = graph.find(input);
    const std::size_t spatial = crop.begins.size();
    if (with_zeros) {
      std::vector<std::int64_t> ones(first_spatial, 0);
      ones.insert(ones.end(), spatial, 1);
      std::vector<std::int64_t> pads(ones);
      pads.insert(pads.end(), ones.begin(), ones.end());
      onnx::Value* amounts = graph.add_constant(output + "_pads", onnx::TensorData::from_ints(pads));
      x = graph.add_node("Pad", {x, amounts}, {output + "_between_zeros"}, old)->output();
    }
    onnx::Node* node = add_operator_node(graph, *op, {x}, {output + "_interpolated"}, old);
    node->name = old->name;
    const auto is_zero = [](std::int64_t n) { return n == 0; };
    if (std::all_of(crop.begins.begin(), crop.begins.end(), is_zero) &&
        std::all_of(crop.ends.begin(), crop.ends.end(), is_zero)) {
      graph.move_output(*old, y->output_index, *node, 0);
      return;
    }
    std::vector<std::int64_t> ends;
    std::vector<std::int64_t> axes;
    for (std::size_t axis = 0; axis < spatial; ++axis) {
      ends.push_back(crop.ends[axis] == 0 ? std::numeric_limits<std::int32_t>::max() : -crop.ends[axis]);
      axes.push_back(static_cast<std::int64_t>(axis + first_spatial));
    }
    onnx::Node* slice = graph.add_node(
        "Slice",
        {node->output(), graph.add_constant(output + "_starts", onnx::TensorData::from_ints(crop.begins)),
         graph.add_constant(output + "_ends", onnx::TensorData::from_ints(ends)),
         graph.add_constant(output + "_axes", onnx::TensorData::from_ints(axes))},
        {output + "_cropped"}, old);
    graph.move_output(*old, y->output_index, *slice, 0);
  };
}

void fuse_deconvolution(Rewriter& rewriter, onnx::Node& node) {
  onnx::Value* x = node.input(0);
  const onnx::Value* w = node.input(1);
  const auto weight = w == nullptr ? std::nullopt : w->constant();
  if (x == nullptr || node.output() == nullptr || !weight || weight->dims.size() < least_rank ||
      weight->dims.size() > most_rank) {
    return;
  }
  const auto near = [&](std::string reason) {
    rewriter.near_miss("Upsampling, deconvolution",
                       {.node = &node, .matched_nodes = 1, .pattern_nodes = 1, .reason = std::move(reason)});
  };
  const auto dtype = x->type ? to_dtype(*x->type) : std::nullopt;
  if (!dtype || !is_floating_point(*dtype)) return;
  const Deconvolution found = read_deconvolution(node, *weight);
  if (!found.obstacle.empty()) return near(found.obstacle);
  const Crop crop = crop_of(found);
  const auto is_negative = [](std::int64_t n) { return n < 0; };
  if (std::any_of(crop.begins.begin(), crop.begins.end(), is_negative) ||
      std::any_of(crop.ends.begin(), crop.ends.end(), is_negative)) {
    return near("the result is larger than the interpolation of the zero-padded image");
  }
  const bool is_repeat = found.kernel == Kernel::repeat;
  const std::vector<float> scales(found.factors.begin(), found.factors.end());
  const Made made = make_upsampling(
      {{"mode", std::string(is_repeat ? "nearest" : "linear")},
       {"scales", scales},
       {"coordinate_mode", std::string(found.kernel == Kernel::linear_even ? "half_pixel" : "asymmetric")},
       {"nearest_mode", std::string("floor")}});
  if (!made.op) return near(made.obstacle);
  if (!is_wanted(rewriter, *made.op, *x, *node.output())) return;
  rewriter.apply(
      {.nodes = {&node},
       .inputs = {x},
       .outputs = {node.output()},
       .replacement = to_text(*made.op) + (is_repeat ? "" : " of the zero-padded image"),
       .reason = is_repeat ? "a deconvolution whose weights are 1, without overlap, repeats elements"
                           : "a deconvolution with fixed bilinear weights interpolates, with zeros beyond the edge",
       .by_definition = "",
       .edit = deconvolution_edit(made.op, !is_repeat, crop, x->name, node.output()->name)});
}

// ---- Resize

struct Resize {
  std::vector<NamedAttribute> attributes;
  std::string why;       ///< Why TensorRT's own layer refuses the node; empty if it supports the node.
  std::string obstacle;  ///< Why Upsampling cannot replace the node.
};

std::optional<std::vector<double>> constant_numbers(const onnx::Value* value) {
  const auto constant = value == nullptr ? std::nullopt : value->constant();
  auto numbers = constant ? constant->numbers() : std::nullopt;
  return numbers && !numbers->empty() ? std::move(numbers) : std::nullopt;
}

/// Returns one number for each axis of x: `given` in the order of the node's attribute `axes`, and `other` for each
/// axis that `axes` does not list. Returns `given` if the node does not have the attribute.
std::vector<double> for_all_axes(const onnx::Node& node, const std::vector<double>& given, std::size_t rank,
                                 double other) {
  const auto axes = node.ints("axes");
  if (!axes) return given;
  std::vector<double> all(rank, other);
  for (std::size_t i = 0; i < std::min(axes->size(), given.size()); ++i) {
    const std::int64_t axis = (*axes)[i] + ((*axes)[i] < 0 ? static_cast<std::int64_t>(rank) : 0);
    if (axis >= 0 && axis < static_cast<std::int64_t>(rank)) all[static_cast<std::size_t>(axis)] = given[i];
  }
  return all;
}

Resize read_resize(const onnx::Node& node, const onnx::Value& x, const onnx::Value& y) {
  Resize found;
  const auto fail = [&](std::string why) {
    found.obstacle = std::move(why);
    return found;
  };
  const auto rank = static_cast<std::size_t>(x.rank().value_or(0));
  if (rank < least_rank || rank > most_rank)
    return fail(fmt::format("'{}' has rank {}; Upsampling supports the ranks 3 to 5", x.name, rank));
  const std::string mode = node.string_or("mode", "nearest");
  std::string coordinates = node.string_or("coordinate_transformation_mode", "half_pixel");
  std::string nearest = node.string_or("nearest_mode", "round_prefer_floor");
  if (node.string_or("keep_aspect_ratio_policy", "stretch") != "stretch")
    return fail("its `keep_aspect_ratio_policy` is set to another value than stretch");

  // The growth of each axis follows from the scales, or from the sizes before and after.
  auto scales = constant_numbers(node.input(2));
  const auto sizes = constant_numbers(node.input(3));
  if (!scales && !sizes) return fail("its sizes are computed at run time");
  std::vector<double> factors;
  std::vector<std::int64_t> spatial_sizes;
  if (scales) {
    factors = for_all_axes(node, *scales, rank, 1);
  } else {
    const auto all = for_all_axes(node, *sizes, rank, 0);
    for (std::size_t axis = 0; axis < std::min(rank, all.size()); ++axis) {
      const Dim& dim = (*x.shape)[axis];
      const bool known = dim.is_constant() && dim.value() > 0 && all[axis] > 0;
      const bool is_spatial = axis >= first_spatial;
      if (is_spatial)
        spatial_sizes.push_back(static_cast<std::int64_t>(all[axis] > 0 ? all[axis] : known ? dim.value() : 0));
      if (is_spatial && spatial_sizes.back() < 1) return fail("an output size is unknown or 0");
      if (!is_spatial && !(y.shape && axis < y.shape->size() && (*y.shape)[axis] == dim)) {
        return fail("it resizes the batch axis or the channel axis; Upsampling resizes only spatial axes");
      }
      factors.push_back(known ? all[axis] / static_cast<double>(dim.value())
                              : std::numeric_limits<double>::quiet_NaN());
    }
  }
  if (factors.size() != rank)
    return fail(fmt::format("it has {} scales for an input of rank {}", factors.size(), rank));
  if (scales && (factors[0] != 1 || factors[1] != 1))
    return fail("it resizes the batch axis or the channel axis; Upsampling resizes only spatial axes");
  const auto spatial = [&](auto holds) { return std::all_of(factors.begin() + first_spatial, factors.end(), holds); };

  if (node.int_or("antialias", 0) != 0) {
    if (!spatial([](double f) { return f >= 1; })) return fail("it is antialiased, and an axis may shrink");
    if (mode != "nearest") found.why = "TensorRT refuses antialias, which has no effect if no axis shrinks";
  }
  if (coordinates == "tf_half_pixel_for_nn" && mode == "nearest") {
    // floor((i + 0.5) / scale), as half_pixel with round_prefer_ceil: floor((i + 0.5) / scale - 0.5 + 0.5).
    if (nearest == "floor") {
      found.why = "TensorRT refuses tf_half_pixel_for_nn, which with floor equals half_pixel with round_prefer_ceil";
      nearest = "round_prefer_ceil";
      coordinates = "half_pixel";
    }
  } else if (coordinates == "half_pixel_symmetric") {
    if (!spatial([](double f) { return f >= 1 && f == std::floor(f); })) {
      return fail(
          "half_pixel_symmetric equals half_pixel only for integer factors, and Upsampling has no "
          "half_pixel_symmetric");
    }
    found.why = "TensorRT refuses half_pixel_symmetric, which equals half_pixel for integer factors";
    coordinates = "half_pixel";
  } else if (coordinates == "pytorch_half_pixel") {
    const bool longer_than_one = y.shape && std::all_of(y.shape->begin() + first_spatial, y.shape->end(),
                                                        [](const Dim& d) { return d.is_constant() && d.value() > 1; });
    if (!longer_than_one)
      return fail(
          "pytorch_half_pixel equals half_pixel only if every size is above 1, and Upsampling has no "
          "pytorch_half_pixel");
    coordinates = "half_pixel";
  }
  if (coordinates != "half_pixel" && coordinates != "align_corners" && coordinates != "asymmetric") {
    return fail(fmt::format("its coordinate mode is {}; Upsampling supports half_pixel, align_corners and asymmetric",
                            coordinates));
  }
  if (mode == "cubic") {
    if (node.int_or("exclude_outside", 0) != 0)
      return fail("its `exclude_outside` is set, which Upsampling does not support");
    constexpr std::size_t rank_of_images = 4;
    if (rank > rank_of_images && found.why.empty())
      found.why = "TensorRT supports cubic interpolation only along two axes";
  }

  found.attributes = {{"mode", mode}, {"coordinate_mode", coordinates}, {"nearest_mode", nearest}};
  if (mode == "cubic") found.attributes.push_back({"cubic_a", node.float_or("cubic_coeff_a", -0.75F)});
  if (scales) {
    found.attributes.push_back({"scales", std::vector<float>(factors.begin() + first_spatial, factors.end())});
  } else {
    found.attributes.push_back({"sizes", spatial_sizes});
  }
  return found;
}

void fuse_resize(Rewriter& rewriter, onnx::Node& node) {
  onnx::Value* x = node.input(0);
  if (x == nullptr || node.output() == nullptr || !x->type || !x->shape) return;
  const auto dtype = to_dtype(*x->type);
  if (!dtype || !is_floating_point(*dtype)) return;
  const Resize found = read_resize(node, *x, *node.output());
  const bool asked = rewriter.options().plugins == Plugins::always;
  if (found.obstacle.empty() && found.why.empty() && !asked) return;
  const auto near = [&](const std::string& reason) {
    rewriter.near_miss("Upsampling, Resize", {.node = &node, .matched_nodes = 1, .pattern_nodes = 1, .reason = reason});
  };
  if (!found.obstacle.empty()) return near(found.obstacle);
  const Made made = make_upsampling(found.attributes);
  if (!made.op) return near(made.obstacle);
  if (!is_wanted(rewriter, *made.op, *x, *node.output())) return;
  rewriter.apply({.nodes = {&node},
                  .inputs = {x},
                  .outputs = {node.output()},
                  .replacement = to_text(*made.op),
                  .reason = found.why.empty() ? "requested: plugins wherever possible" : found.why,
                  .by_definition = "",
                  .edit = operator_edit(made.op, {x->name}, node.output()->name)});
}

void fuse_upsampling(Rewriter& rewriter) {
  const auto to_a_multiple = [](std::int64_t before, std::int64_t after) { return before > 0 && after % before == 0; };
  fuse_movements(rewriter, "Upsampling, nearest", to_a_multiple,
                 [&](const Movement& movement, const std::vector<AxisMaps>& runs) {
                   return read_movement(rewriter, movement, runs);
                 });
  for (onnx::Graph* graph : rewriter.graphs()) {
    for (onnx::Node* node : graph->nodes()) {
      if (node->is("ConvTranspose")) {
        fuse_deconvolution(rewriter, *node);
      } else if (node->is("Resize")) {
        fuse_resize(rewriter, *node);
      }
    }
  }
}

}  // namespace

extern const OperatorFusion upsampling_fusion{
    .pass = {"fuse_upsampling", "the nodes only move elements; runs before other fusions replace some of their nodes",
             fuse_upsampling}};

}  // namespace graft::passes

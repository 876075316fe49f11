// Converts operators that resample images with weights that ONNX's Resize does not have. The result is the product of
// the image with one matrix of weights for each axis.
//
// The weights are computed by nodes, so that sizes and scales may be computed as well; fold_constants turns those of
// known sizes into constants.
#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <numbers>
#include <string>

#include "import/tensorflow/node_converter.hpp"

namespace graft::tensorflow {
namespace {

constexpr onnx::ElementType f32 = onnx::ElementType::f32;
constexpr onnx::ElementType i64 = onnx::ElementType::i64;

onnx::Value* number(NodeConverter& node, double value) { return node.scalar_of(value, f32); }

/// The sizes of an axis before and after resampling, as scalars of type i64.
struct Axis {
  onnx::Value* before = nullptr;
  onnx::Value* after = nullptr;
  std::int64_t index = 0;  ///< 0 for the height and 1 for the width.
};

/// Returns the positions 0 to `count` - 1 as f32, in a column or in a row.
onnx::Value* positions(NodeConverter& node, onnx::Value* count, bool is_column) {
  onnx::Value* range = node.add("Range", {node.scalar_of(0, i64), count, node.scalar_of(1, i64)});
  return node.add("Unsqueeze", {node.cast(range, f32), node.ints_of({is_column ? 1 : 0})});
}

/// Returns the weights [after, before] by which each element of the result averages the elements that it covers. As in
/// TensorFlow's kernel, the last element stands for all elements after it, which aligned corners may cover.
onnx::Value* area_weights(NodeConverter& node, const Axis& axis, bool are_corners_aligned) {
  onnx::Value* before = node.cast(axis.before, f32);
  onnx::Value* after = node.cast(axis.after, f32);
  onnx::Value* scale = node.add("Div", {before, after});
  if (are_corners_aligned) {
    onnx::Value* steps = node.add("Sub", {after, number(node, 1)});
    onnx::Value* aligned =
        node.add("Div", {node.add("Sub", {before, number(node, 1)}), node.add("Max", {steps, number(node, 1)})});
    scale = node.add("Where", {node.add("Greater", {after, number(node, 1)}), aligned, scale});
  }
  onnx::Value* begins = node.add("Mul", {positions(node, axis.after, true), scale});
  onnx::Value* ends = node.add("Mul", {node.add("Add", {positions(node, axis.after, true), number(node, 1)}), scale});
  onnx::Value* element = positions(node, axis.before, false);
  onnx::Value* next = node.add("Add", {element, number(node, 1)});
  constexpr double after_all = 1e9;
  onnx::Value* element_end = node.add("Where", {node.add("Less", {next, before}), next, number(node, after_all)});
  onnx::Value* covered = node.add("Sub", {node.add("Min", {ends, element_end}), node.add("Max", {begins, element})});
  return node.add("Div", {node.add("Max", {covered, number(node, 0)}), scale});
}

/// A resampling kernel of ScaleAndTranslate: `weigh` computes the weight of a pixel from its distance to the sampled
/// position.
struct Kernel {
  std::string_view name;
  onnx::Value* (*weigh)(NodeConverter& node, onnx::Value* distance);
};

/// Returns `inside` where the distance is below the limit, and `outside` elsewhere.
onnx::Value* below(NodeConverter& node, onnx::Value* distance, double limit, onnx::Value* inside,
                   onnx::Value* outside) {
  return node.add("Where", {node.add("Less", {distance, number(node, limit)}), inside, outside});
}

/// Returns ((c3 * x + c2) * x + c1) * x + c0.
onnx::Value* cubic(NodeConverter& node, onnx::Value* x, double c3, double c2, double c1, double c0) {
  onnx::Value* y = node.add("Add", {node.add("Mul", {x, number(node, c3)}), number(node, c2)});
  y = node.add("Add", {node.add("Mul", {y, x}), number(node, c1)});
  return node.add("Add", {node.add("Mul", {y, x}), number(node, c0)});
}

template <int radius>
onnx::Value* lanczos(NodeConverter& node, onnx::Value* x) {
  constexpr double smallest = 1e-3;  // TensorFlow's kernel is 1 up to this distance.
  const double pi = std::numbers::pi;
  onnx::Value* angle = node.add("Mul", {node.add("Max", {x, number(node, smallest)}), number(node, pi)});
  onnx::Value* slow = node.add("Sin", {node.add("Div", {angle, number(node, radius)})});
  onnx::Value* product = node.add("Mul", {node.add("Mul", {node.add("Sin", {angle}), slow}), number(node, radius)});
  onnx::Value* y = node.add("Div", {product, node.add("Mul", {angle, angle})});
  y = node.add("Where", {node.add("Greater", {x, number(node, smallest)}), y, number(node, 1)});
  return node.add("Where", {node.add("Greater", {x, number(node, radius)}), number(node, 0), y});
}

onnx::Value* gaussian(NodeConverter& node, onnx::Value* x) {
  constexpr double radius = 1.5;
  constexpr double deviation = radius / 3;
  onnx::Value* exponent = node.add("Mul", {node.add("Mul", {x, x}), number(node, -1 / (2 * deviation * deviation))});
  return below(node, x, radius, node.add("Exp", {exponent}), number(node, 0));
}

onnx::Value* box(NodeConverter& node, onnx::Value* x) {
  onnx::Value* edge =
      node.add("Where", {node.add("Equal", {x, number(node, 0.5)}), number(node, 0.5), number(node, 0)});
  return below(node, x, 0.5, number(node, 1), edge);
}

onnx::Value* triangle(NodeConverter& node, onnx::Value* x) {
  return node.add("Max", {node.add("Sub", {number(node, 1), x}), number(node, 0)});
}

onnx::Value* keys_cubic(NodeConverter& node, onnx::Value* x) {
  onnx::Value* far = below(node, x, 2, cubic(node, x, -0.5, 2.5, -4, 2), number(node, 0));
  return below(node, x, 1, cubic(node, x, 1.5, -2.5, 0, 1), far);
}

onnx::Value* mitchell_cubic(NodeConverter& node, onnx::Value* x) {
  onnx::Value* far = below(node, x, 2, cubic(node, x, -7.0 / 18, 2, -10.0 / 3, 16.0 / 9), number(node, 0));
  return below(node, x, 1, cubic(node, x, 7.0 / 6, -2, 0, 8.0 / 9), far);
}

constexpr std::array kernels = {
    Kernel{"lanczos1", lanczos<1>},
    Kernel{"lanczos3", lanczos<3>},
    Kernel{"lanczos5", lanczos<5>},
    Kernel{"gaussian", gaussian},
    Kernel{"box", box},
    Kernel{"triangle", triangle},
    Kernel{"keyscubic", keys_cubic},
    Kernel{"mitchellcubic", mitchell_cubic},
};

/// Returns the weights [after, before] of ScaleAndTranslate. Results whose position lies outside of the image are 0.
onnx::Value* scaled_weights(NodeConverter& node, const Axis& axis) {
  const std::string name = node.text_or("kernel_type", "lanczos3");
  const auto* const kernel =
      std::find_if(kernels.begin(), kernels.end(), [&](const Kernel& each) { return each.name == name; });
  if (kernel == kernels.end()) {
    node.fail(fmt::format(
        "attribute `kernel_type` is {}; it must be lanczos1, lanczos3, lanczos5, gaussian, box, triangle, keyscubic or "
        "mitchellcubic",
        name));
  }
  const auto one_of = [&](std::size_t i) {
    return node.reshape(node.slice_1d(node.input(i), axis.index, axis.index + 1), {});
  };
  onnx::Value* step = node.add("Div", {number(node, 1), one_of(2)});
  onnx::Value* offset = node.add("Mul", {step, one_of(3)});
  onnx::Value* width = number(node, 1);
  if (node.flag_or("antialias", true)) width = node.add("Max", {step, width});
  onnx::Value* half = number(node, 0.5);
  onnx::Value* center = node.add("Mul", {node.add("Add", {positions(node, axis.after, true), half}), step});
  center = node.add("Sub", {center, offset});
  onnx::Value* distance = node.add("Sub", {node.add("Add", {positions(node, axis.before, false), half}), center});
  distance = node.add("Div", {node.add("Abs", {distance}), width});
  onnx::Value* weights = kernel->weigh(node, distance);
  onnx::Value* sum = node.add("ReduceSum", {weights, node.ints_of({1})}, {{"keepdims", std::int64_t{1}}});
  onnx::Value* is_inside = node.add("And", {node.add("GreaterOrEqual", {center, number(node, 0)}),
                                            node.add("LessOrEqual", {center, node.cast(axis.before, f32)})});
  constexpr double smallest_sum = 1000 * static_cast<double>(std::numeric_limits<float>::min());
  onnx::Value* has_sum = node.add("GreaterOrEqual", {node.add("Abs", {sum}), number(node, smallest_sum)});
  onnx::Value* divisor = node.add("Where", {has_sum, sum, number(node, 1)});
  return node.add("Where",
                  {node.add("And", {is_inside, has_sum}), node.add("Div", {weights, divisor}), number(node, 0)});
}

onnx::Value* size_of(NodeConverter& node, onnx::Value* images, std::int64_t index) {
  const std::size_t axis = static_cast<std::size_t>(index) + 1;
  if (images->shape && (*images->shape)[axis].is_constant()) {
    return node.scalar_of(static_cast<double>((*images->shape)[axis].value()), i64);
  }
  return node.reshape(node.slice_1d(node.shape_of(images), index + 1, index + 2), {});
}

/// Returns the factors by which the images are reduced; nothing if they are unknown or not whole.
std::optional<Ints> whole_factors(const NodeConverter& node, const onnx::Value* images) {
  const auto sizes = node.ints(1);
  if (!sizes || sizes->size() != 2 || !images->shape) return std::nullopt;
  Ints factors;
  for (std::size_t i = 0; i < 2; ++i) {
    const Dim& size = (*images->shape)[i + 1];
    const std::int64_t wanted = (*sizes)[i];
    if (!size.is_constant() || wanted < 1 || size.value() < wanted || size.value() % wanted != 0) return std::nullopt;
    factors.push_back(size.value() / wanted);
  }
  return factors;
}

void resample(NodeConverter& node) {
  onnx::Value* images = node.cast(node.input(0), f32);
  if (node.known_rank(images, "its second and third axis are resampled") != 4) {
    node.fail("the images (input 0) must have 4 dimensions");
  }
  const bool is_area = node.op() == "ResizeArea";
  const bool are_corners_aligned = node.flag_or("align_corners", false);
  onnx::Value* x = node.transpose(images, {0, 3, 1, 2});
  const auto factors = is_area && !are_corners_aligned ? whole_factors(node, images) : std::nullopt;
  if (factors) {
    x = node.add("AveragePool", {x}, {{"kernel_shape", *factors}, {"strides", *factors}});
  } else {
    onnx::Value* sizes = node.as_i64(1);
    for (const std::int64_t i : {std::int64_t{0}, std::int64_t{1}}) {
      const Axis axis{size_of(node, images, i), node.reshape(node.slice_1d(sizes, i, i + 1), {}), i};
      onnx::Value* weights = is_area ? area_weights(node, axis, are_corners_aligned) : scaled_weights(node, axis);
      x = i == 0 ? node.add("MatMul", {weights, x}) : node.add("MatMul", {x, node.transpose(weights, {1, 0})});
    }
  }
  node.give(node.transpose(x, {0, 2, 3, 1}));
}

}  // namespace

OperatorEntries sampling_operators() {
  static const std::vector<OperatorEntry> entries = entries_of({{resample, "ResizeArea ScaleAndTranslate"}});
  return entries;
}

}  // namespace graft::tensorflow

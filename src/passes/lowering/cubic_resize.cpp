// Cubic Resize with dynamic height or width after an If, Loop or Scan, which TensorRT does not build.
//
//   Resize<mode="cubic">(x, scales)   becomes, for each axis that changes, the sum of four Gather(x, i) * w
//
// i are the four positions around each point of the output, at most those at the ends, and w their weights. Both are
// computed from the size of the axis, which may be dynamic.
#include <fmt/format.h>

#include <cmath>
#include <numeric>

#include "onnx/resize_weights.hpp"
#include "passes/lowering/lowering.hpp"

namespace graft::passes {
namespace {

/// Writes the nodes that resize one axis with cubic interpolation when its size is dynamic.
class AxisWriter {
 public:
  AxisWriter(Replacement& result, std::size_t axis, std::size_t rank) : result_(result), axis_(axis), rank_(rank) {}

  /// Writes the nodes that resize the axis of `x`, and returns the name of the result. `wanted` is the new size if
  /// `is_size`, otherwise the scale. `resize` supplies the attributes.
  std::string write(const std::string& x, const onnx::Node& resize, double wanted, bool is_size) {
    line("shape", fmt::format("Shape<start={}, end={}>({})", axis_, axis_ + 1, x));
    line("from", fmt::format("Cast<to=float>({})", at("shape")));
    if (is_size) {
      line("to", fmt::format("Identity({})", number("wanted", wanted)));
      line("scale", fmt::format("Div({}, {})", at("to"), at("from")));
    } else {
      line("scale", fmt::format("Identity({})", number("wanted", wanted)));
      line("exact", fmt::format("Mul({}, {})", at("from"), at("scale")));
      line("to", fmt::format("Floor({})", at("exact")));
    }
    line("none", fmt::format("Squeeze({}, {})", at("to"), result_.ints(at("first"), {0})));
    line("count", fmt::format("Cast<to=int64>({})", at("none")));
    line("numbers",
         fmt::format("Range({}, {}, {})", result_.integer(at("zero"), 0), at("count"), result_.integer(at("one"), 1)));
    line("place", fmt::format("Cast<to=float>({})", at("numbers")));
    write_source(resize.string_or("coordinate_transformation_mode", "half_pixel"));
    line("floor", fmt::format("Floor({})", at("source")));
    line("t", fmt::format("Sub({}, {})", at("source"), at("floor")));
    line("last", fmt::format("Sub({}, {})", at("from"), number("unit", 1)));
    std::string sum;
    for (const int tap : {-1, 0, 1, 2}) sum = add_tap(x, tap, resize.float_or("cubic_coeff_a", -0.75F), sum);
    return sum;
  }

 private:
  [[nodiscard]] std::string at(const std::string& name) const { return fmt::format("{}_{}", name, axis_); }
  std::string line(const std::string& name, const std::string& computation) {
    result_.line(fmt::format("{} = {}", at(name), computation));
    return at(name);
  }
  std::string number(const std::string& name, double value) {
    return result_.constant(at(name), f32_tensor({1}, {value}));
  }

  /// Writes the nodes that compute, for each output position, the floating-point input position by the formula of the
  /// coordinate_transformation_mode `mode`.
  void write_source(const std::string& mode) {
    if (mode == "align_corners") {
      line("gaps", fmt::format("Sub({}, {})", at("to"), number("gap", 1)));
      line("some_gaps", fmt::format("Max({}, {})", at("gaps"), at("gap")));
      line("from_gaps", fmt::format("Sub({}, {})", at("from"), at("gap")));
      line("far", fmt::format("Mul({}, {})", at("place"), at("from_gaps")));
      line("source", fmt::format("Div({}, {})", at("far"), at("some_gaps")));
    } else if (mode == "asymmetric") {
      line("source", fmt::format("Div({}, {})", at("place"), at("scale")));
    } else {
      line("middle", fmt::format("Add({}, {})", at("place"), number("half", 0.5)));
      line("scaled", fmt::format("Div({}, {})", at("middle"), at("scale")));
      line("source", fmt::format("Sub({}, {})", at("scaled"), at("half")));
    }
  }

  /// Writes the nodes that add the weighted input element at floor(position) + `tap` to `sum`, and returns the name of
  /// the new sum. `tap` is -1, 0, 1 or 2, and `a` the cubic_coeff_a.
  std::string add_tap(const std::string& x, int tap, double a, const std::string& sum) {
    const std::string k = std::to_string(tap + 1);
    line("moved" + k, fmt::format("Add({}, {})", at("floor"), number("tap" + k, tap)));
    line("low" + k, fmt::format("Max({}, {})", at("moved" + k), number("begin" + k, 0)));
    line("inside" + k, fmt::format("Min({}, {})", at("low" + k), at("last")));
    line("index" + k, fmt::format("Cast<to=int64>({})", at("inside" + k)));
    line("element" + k, fmt::format("Gather<axis={}>({}, {})", axis_, x, at("index" + k)));
    // The distance of the point from the element, and the polynomial of the distance.
    line("way" + k, fmt::format("Sub({}, {})", at("t"), at("tap" + k)));
    line("d" + k, fmt::format("Abs({})", at("way" + k)));
    const bool is_near = tap == 0 || tap == 1;
    const std::vector<double> factors =
        is_near ? std::vector<double>{a + 2, -(a + 3), 0, 1} : std::vector<double>{a, -5 * a, 8 * a, -4 * a};
    std::string value = number("factor" + k + "_0", factors[0]);
    for (std::size_t i = 1; i < factors.size(); ++i) {
      const std::string step = fmt::format("{}_{}", k, i);
      line("product" + step, fmt::format("Mul({}, {})", value, at("d" + k)));
      value =
          line("horner" + step, fmt::format("Add({}, {})", at("product" + step), number("factor" + step, factors[i])));
    }
    std::vector<std::int64_t> shape(rank_ - axis_, 1);
    shape.front() = -1;
    line("weight" + k, fmt::format("Reshape({}, {})", value, result_.ints(at("weights_shape"), shape)));
    const std::string part = line("part" + k, fmt::format("Mul({}, {})", at("element" + k), at("weight" + k)));
    return sum.empty() ? part : line("sum" + k, fmt::format("Add({}, {})", sum, part));
  }

  Replacement& result_;
  std::size_t axis_;
  std::size_t rank_;
};

}  // namespace

std::optional<Replacement> lower_cubic_resize(Site& site) {
  const onnx::Node& node = site.node();
  // No shape is proven after a Loop. Its results have the rank that its body declares.
  const std::optional<Shape>& declared = node.input(0)->shape;
  const Shape* shape = site.shape(0) == nullptr && declared ? &*declared : site.shape(0);
  if (shape == nullptr || !site.is_real(0))
    return site.no("its input must have a known rank and the type f32, f16 or bf16");
  const onnx::Interpolation how = onnx::interpolation_of(node);
  const std::string mode = node.string_or("coordinate_transformation_mode", "half_pixel");
  if (how.antialias || node.int_or("exclude_outside", 0) != 0 ||
      node.string_or("keep_aspect_ratio_policy", "stretch") != "stretch" ||
      (mode != "half_pixel" && mode != "asymmetric" && mode != "align_corners")) {
    return site.no("its attributes are not those of a plain cubic Resize");
  }
  const auto axes = onnx::resized_axes(node, shape->size());
  const bool is_size = site.has_input(3);
  const auto wanted = site.numbers(is_size ? 3 : 2);
  if (!axes || !wanted || wanted->size() != axes->size())
    return site.no("its scales, its sizes or its axes are not constants");
  Replacement result;
  std::string x = result.in_f32("x0", site.type(0));
  std::size_t changed = 0;
  for (std::size_t i = 0; i < axes->size(); ++i) {
    const auto axis = static_cast<std::size_t>((*axes)[i]);
    const auto size = site.size(0, (*axes)[i]);
    const bool stays = is_size ? size && static_cast<double>(*size) == (*wanted)[i] : (*wanted)[i] == 1;
    if (stays) continue;
    if ((*wanted)[i] <= 0) return site.no("one of its sizes or scales is not positive");
    x = AxisWriter(result, axis, shape->size()).write(x, node, (*wanted)[i], is_size);
    ++changed;
  }
  result.give("y0", site.type(0), fmt::format("Identity({})", x));
  result.summary = fmt::format("the weighted sum of four Gather along {} axes", changed);
  return result;
}

}  // namespace graft::passes

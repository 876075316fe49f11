// Definition of SpatialPyramidPooling: checks, shapes, ONNX function, and drop-ins.
#include "ops/spatial_pyramid_pooling/spatial_pyramid_pooling.hpp"

namespace graft::ops {
namespace {

std::string name_of(const auto& value) {
  for (const auto& choice : choices(value)) {
    if (choice.value == value) return std::string(choice.name);
  }
  return {};
}

/// Writes the lines of a function body, each with a new name for its result.
class Body {
 public:
  [[nodiscard]] const std::string& text() const { return text_; }
  std::string add(const std::string& call) {
    std::string name = "v" + std::to_string(count_++);
    text_ += name + " = " + call + "\n";
    return name;
  }
  std::string call(const std::string& type, std::initializer_list<std::string> inputs) {
    std::string list;
    for (const std::string& input : inputs) list += (list.empty() ? "" : ", ") + input;
    return add(type + "(" + list + ")");
  }
  /// Adds a constant list with one integer, and returns its name.
  std::string integer(std::int64_t value) { return add("Constant<value=int64([" + std::to_string(value) + "])>()"); }
  std::string binary(const std::string& type, const std::string& a, const std::string& b) { return call(type, {a, b}); }
  /// Adds floor(a / b) for integers that are not negative, and returns its name.
  std::string floor_divide(const std::string& a, std::int64_t b) { return binary("Div", a, integer(b)); }
  std::string ceil_divide(const std::string& a, std::int64_t b) {
    return floor_divide(binary("Add", a, integer(b - 1)), b);
  }

 private:
  std::string text_;
  int count_ = 0;
};

struct BodyBin {
  std::string begin;
  std::string end;
  /// The factor of this axis in the divisor of an average, for the rule `caffe`; otherwise empty.
  std::string divisor;
};

/// Adds lines that compute bin `index` of an axis of `size` elements as bin_at() does, and returns the names of their
/// results.
BodyBin body_bin(Body& body, Binning binning, const std::string& size, std::int64_t bins, std::int64_t index) {
  if (binning == Binning::adaptive) {
    const auto times = [&](std::int64_t factor) { return body.binary("Mul", size, body.integer(factor)); };
    return {body.floor_divide(times(index), bins), body.ceil_divide(times(index + 1), bins), ""};
  }
  const std::string ceiling = body.ceil_divide(size, bins);
  const std::string i = body.integer(index);
  if (binning == Binning::window) {
    const std::string begin = body.binary("Mul", i, body.floor_divide(size, bins));
    return {begin, body.binary("Add", begin, ceiling), ""};
  }
  const std::string excess = body.binary("Sub", body.binary("Mul", ceiling, body.integer(bins)), size);
  const std::string pad = body.floor_divide(body.binary("Add", excess, body.integer(1)), 2);
  const std::string first = body.binary("Sub", body.binary("Mul", ceiling, i), pad);
  return {body.binary("Max", first, body.integer(0)), body.binary("Min", body.binary("Add", first, ceiling), size),
          ceiling};
}

/// Adds lines that pool one axis of `from` to `bins` bins, and returns the name of the result. Bins are rectangles, so
/// the axes can be pooled one after the other.
std::string pool_axis(Body& body, const SpatialPyramidPooling& op, const std::string& from, int axis,
                      std::int64_t bins) {
  const std::string a = std::to_string(axis);
  const bool padded_average = op.mode == PoolingMode::average && op.binning == Binning::caffe;
  const std::string axes = body.integer(axis);
  const std::string size = body.add("Gather(shape, " + axes + ")");
  std::string pieces;
  for (std::int64_t i = 0; i < bins; ++i) {
    const BodyBin bin = body_bin(body, op.binning, size, bins, i);
    const std::string piece = body.call("Slice", {from, bin.begin, bin.end, axes});
    std::string pooled;
    if (padded_average) {
      const std::string sum = body.call("ReduceSum<keepdims=1>", {piece, axes});
      pooled = body.binary("Div", sum, body.add("Cast<to=1>(" + bin.divisor + ")"));
    } else {
      std::string type = op.mode == PoolingMode::max ? "ReduceMax<axes=[" : "ReduceMean<axes=[";
      type += a;
      type += "], keepdims=1>";
      pooled = body.call(type, {piece});
    }
    pieces += (i == 0 ? "" : ", ") + pooled;
  }
  return body.add("Concat<axis=" + a + ">(" + pieces + ")");
}

}  // namespace

std::int64_t SpatialPyramidPooling::bins_per_channel() const {
  std::int64_t count = 0;
  for (const std::int64_t bins : levels) count += bins * bins;
  return count;
}

std::vector<Shape> SpatialPyramidPooling::infer_shapes(std::span<const Shape> inputs) const {
  const Shape& x = inputs[0];
  if (x.size() != 4) return {x};  // The function accepts() rejects other ranks.
  return {{x[0], x[1] * bins_per_channel()}};
}

Status SpatialPyramidPooling::check_attributes() const {
  if (!levels.empty() && levels.size() <= 64) return {};
  return invalid_argument("attribute `levels` has " + std::to_string(levels.size()) +
                          " elements; it must have 1 to 64");
}

Status SpatialPyramidPooling::check(const Problem& problem) const {
  const Extents& x = problem.inputs[0].extents;
  for (const std::int64_t bins : levels) {
    for (int axis = 2; axis < 4; ++axis) {
      if (can_bin(binning, x[axis], bins)) continue;
      return invalid_argument("attribute `levels`: an axis of " + std::to_string(x[axis]) + " elements cannot have " +
                              std::to_string(bins) + " bins with binning " + name_of(binning) +
                              (x[axis] > 0 ? "; binning adaptive supports any number of bins" : ""));
    }
  }
  return {};
}

std::optional<Function> SpatialPyramidPooling::function(const FunctionInputs& inputs) const {
  std::string function_name = std::string(name) + "_" + name_of(mode) + "_" + name_of(binning);
  Body body;
  std::string flat;
  for (const std::int64_t bins : levels) {
    function_name += "_" + std::to_string(bins);
    const std::string rows = pool_axis(body, *this, "x32", 2, bins);
    const std::string pooled = pool_axis(body, *this, rows, 3, bins);
    flat += (flat.empty() ? "" : ", ") + body.add("Flatten<axis=1>(" + pooled + ")");
  }
  return function_in_f32(function_name, inputs.dtype,
                         "shape = Shape(x32)\n" + body.text() + "y32 = Concat<axis=1>(" + flat + ")");
}

std::vector<DropIn> SpatialPyramidPooling::drop_ins() {
  return {{.plugin_name = "SPP_TRT",
           .version = "1",
           .fields = {{.name = "levels", .attribute = "levels"},
                      {.name = "mode", .attribute = "mode"},
                      {.name = "binning", .attribute = "binning"}},
           .doc = "the plugin name that hand-written networks use"}};
}

}  // namespace graft::ops

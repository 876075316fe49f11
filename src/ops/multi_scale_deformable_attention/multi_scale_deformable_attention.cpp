// Definition of MultiScaleDeformableAttention: checks, shapes, ONNX function.
#include "ops/multi_scale_deformable_attention/multi_scale_deformable_attention.hpp"

#include <stdexcept>

namespace graft::ops {
namespace {

constexpr int leading_axes = 3;  // B,Q,M of points and weights

/// Returns the numbers as a string such as "4, 4, 4", with `separator` between them.
std::string joined(std::span<const std::int64_t> numbers, const std::string& separator) {
  std::string text;
  for (const std::int64_t number : numbers) text += (text.empty() ? "" : separator) + std::to_string(number);
  return text;
}

/// Returns the product of the axes from the fourth one (after B, Q and M) up to, but not including, axis `end`.
/// Together they are T.
std::int64_t count_after_heads(const Extents& extents, int end) {
  std::int64_t count = 1;
  for (int axis = leading_axes; axis < end; ++axis) count *= extents[axis];
  return count;
}

}  // namespace

std::size_t MultiScaleDeformableAttention::level_count(const Problem& problem) const {
  return points.empty() ? static_cast<std::size_t>(problem.inputs[2].extents[leading_axes]) : points.size();
}

std::int64_t MultiScaleDeformableAttention::points_at(std::size_t level, const Problem& problem) const {
  return points.empty() ? problem.inputs[2].extents[leading_axes + 1] : points[level];
}

std::int64_t MultiScaleDeformableAttention::point_count(const Problem& problem) const {
  std::int64_t count = 0;
  for (std::size_t level = 0; level < level_count(problem); ++level) count += points_at(level, problem);
  return count;
}

std::vector<Shape> MultiScaleDeformableAttention::infer_shapes(std::span<const Shape> inputs) {
  constexpr std::array<std::size_t, 4> least_ranks{4, 2, 5, 4};
  for (std::size_t port = 0; port < least_ranks.size(); ++port) {
    const std::size_t rank = inputs[port].size();
    const bool may_be_split = port >= 2;
    if (rank == least_ranks[port] || (may_be_split && rank > least_ranks[port])) continue;
    throw std::invalid_argument("`" + std::string(ports()[port].name) + "` has rank " + std::to_string(rank) +
                                "; the rank must be " + (may_be_split ? "at least " : "") +
                                std::to_string(least_ranks[port]));
  }
  return {{inputs[0][0], inputs[2][1], inputs[0][2], inputs[0][3]}};
}

Status MultiScaleDeformableAttention::check_attributes() const {
  if (points.size() <= most_levels) return {};
  return invalid_argument("attribute `points` of MultiScaleDeformableAttention has " + std::to_string(points.size()) +
                          " elements; it may have at most " + std::to_string(most_levels));
}

Status MultiScaleDeformableAttention::check(const Problem& problem) const {
  const Extents& value = problem.inputs[0].extents;
  const Extents& shapes = problem.inputs[1].extents;
  const Extents& locations = problem.inputs[2].extents;
  const Extents& weights = problem.inputs[3].extents;
  const auto refuse = [](const std::string& port, const Extents& found, const std::string& required) {
    return invalid_argument("MultiScaleDeformableAttention: " + port + " has shape " + to_string(found) +
                            "; it must have " + required);
  };
  if (points.empty()) {
    constexpr int split_rank = 6;
    const bool is_split = locations.rank() == split_rank && locations[3] >= 1 &&
                          locations[3] <= static_cast<std::int64_t>(most_levels) && locations[4] >= 1 &&
                          locations[4] <= most_points;
    if (!is_split) {
      return refuse("sampling_locations", locations,
                    "shape BxQxMxLxPx2 if the attribute points is empty, with L between 1 and " +
                        std::to_string(most_levels) + " and P between 1 and " + std::to_string(most_points));
    }
  }
  const std::string levels = std::to_string(level_count(problem));
  if (shapes[0] != static_cast<std::int64_t>(level_count(problem)) || shapes[1] != 2) {
    return refuse(
        "spatial_shapes", shapes,
        "shape " + levels + "x2, because " +
            (points.empty() ? "sampling_locations has " + levels + " maps" : "points has " + levels + " elements"));
  }
  const int last = locations.rank() - 1;
  const std::int64_t all_points = point_count(problem);
  if (locations[0] != value[0] || locations[2] != value[2] || locations[last] != 2 ||
      count_after_heads(locations, last) != all_points) {
    return refuse("sampling_locations", locations,
                  "shape " + std::to_string(value[0]) + "xQx" + std::to_string(value[2]) + "x" +
                      std::to_string(all_points) + "x2: the sizes are those of value, and the sum of points");
  }
  if (weights[0] != locations[0] || weights[1] != locations[1] || weights[2] != locations[2] ||
      count_after_heads(weights, weights.rank()) != all_points) {
    return refuse("attention_weights", weights, "the shape of sampling_locations without its last axis");
  }
  constexpr std::int64_t most = 0x7FFFFFFF;  // The kernels index the pixels, and the channels of a pixel, in 32 bits.
  if (value[1] > most || (value[3] != 0 && value[2] > most / value[3])) {
    return refuse("value", value, "at most 2147483647 pixels, and at most 2147483647 channels in all heads");
  }
  return {};
}

/// Returns the ONNX function. Pixels outside their map are read from a row of zeros that is appended to the pixels. The
/// last axis of the tensors with points is the four pixels around a point.
std::optional<Function> MultiScaleDeformableAttention::function(const FunctionInputs& /*inputs*/) const {
  std::vector<std::int64_t> level_of;
  for (std::size_t level = 0; level < points.size(); ++level) {
    level_of.insert(level_of.end(), static_cast<std::size_t>(points[level]), static_cast<std::int64_t>(level));
  }
  const std::string count = std::to_string(level_of.size());
  std::string body = "levels = Constant<value_ints=[" + joined(level_of, ", ") +
                     "]>()\n"
                     "split = Constant<value_ints=[0, 0, 0, " +
                     count +
                     ", 2]>()\n"
                     "together = Constant<value_ints=[0, 0, 0, " +
                     count + "]>()\n";
  if (points.empty()) {
    body = R"(three = Constant<value_int=3>()
four = Constant<value_int=4>()
first = Constant<value_int=0>()
step = Constant<value_int=1>()
front = Constant<value_ints=[0, 0, 0]>()
pair = Constant<value_ints=[2]>()
axis = Constant<value_ints=[0]>()
split_shape = Shape(sampling_locations)
level_count = Gather(split_shape, three)
points_of_level = Gather(split_shape, four)
point_count = Mul(level_count, points_of_level)
point = Range(first, point_count, step)
levels = Div(point, points_of_level)
count = Unsqueeze(point_count, axis)
together = Concat<axis=0>(front, count)
split = Concat<axis=0>(together, pair)
)";
  }
  body += R"(zero = Constant<value_int=0>()
one = Constant<value_int=1>()
last = Constant<value_ints=[-1]>()
none32 = Constant<value_float=0.0>()
half32 = Constant<value_float=0.5>()
below32 = Constant<value_float=-1.0>()
right = Constant<value_ints=[0, 1, 0, 1]>()
down = Constant<value_ints=[0, 0, 1, 1]>()
left32 = Constant<value_floats=[1.0, 0.0, 1.0, 0.0]>()
up32 = Constant<value_floats=[1.0, 1.0, 0.0, 0.0]>()
shapes64 = Cast<to=7>(spatial_shapes)
shapes = Max(shapes64, zero)
areas = ReduceProd<axes=[1], keepdims=0>(shapes)
first_pixels = CumSum<exclusive=1>(areas, zero)
first_pixel_of = Gather(first_pixels, levels)
first_pixel = Unsqueeze(first_pixel_of, last)
shape_of = Gather(shapes, levels)
height_of = Gather<axis=1>(shape_of, zero)
width_of = Gather<axis=1>(shape_of, one)
height = Unsqueeze(height_of, last)
width = Unsqueeze(width_of, last)
height32 = Cast<to=1>(height_of)
width32 = Cast<to=1>(width_of)
locations = Reshape(sampling_locations, split)
locations_of_heads = Transpose<perm=[0, 2, 1, 3, 4]>(locations)
locations32 = Cast<to=1>(locations_of_heads)
share_x = Gather<axis=4>(locations32, zero)
share_y = Gather<axis=4>(locations32, one)
scaled_x = Mul(share_x, width32)
scaled_y = Mul(share_y, height32)
any_x = Sub(scaled_x, half32)
any_y = Sub(scaled_y, half32)
in_left = Greater(any_x, below32)
in_right = Less(any_x, width32)
in_up = Greater(any_y, below32)
in_down = Less(any_y, height32)
in_x = And(in_left, in_right)
in_y = And(in_up, in_down)
in_map = And(in_x, in_y)
x32 = Where(in_map, any_x, none32)
y32 = Where(in_map, any_y, none32)
low_x32 = Floor(x32)
low_y32 = Floor(y32)
low_x = Cast<to=7>(low_x32)
low_y = Cast<to=7>(low_y32)
low_x_of = Unsqueeze(low_x, last)
low_y_of = Unsqueeze(low_y, last)
x = Add(low_x_of, right)
y_of = Add(low_y_of, down)
row = Mul(y_of, width)
in_row = Add(row, x)
pixel = Add(first_pixel, in_row)
value_shape = Shape(value)
pixels = Gather(value_shape, one)
has_left = GreaterOrEqual(x, zero)
has_right = Less(x, width)
has_up = GreaterOrEqual(y_of, zero)
has_down = Less(y_of, height)
has_pixel = Less(pixel, pixels)
in_map_of = Unsqueeze(in_map, last)
has_x = And(has_left, has_right)
has_y = And(has_up, has_down)
has_both = And(has_x, has_y)
has_some = And(has_both, has_pixel)
has = And(has_some, in_map_of)
index = Where(has, pixel, pixels)
index_of = Unsqueeze(index, last)
part_x = Sub(x32, low_x32)
part_y = Sub(y32, low_y32)
part_x_of = Unsqueeze(part_x, last)
part_y_of = Unsqueeze(part_y, last)
signed_x = Sub(left32, part_x_of)
signed_y = Sub(up32, part_y_of)
weight_x = Abs(signed_x)
weight_y = Abs(signed_y)
weight_of_corner = Mul(weight_x, weight_y)
weights = Reshape(attention_weights, together)
weights_of_heads = Transpose<perm=[0, 2, 1, 3]>(weights)
weights32 = Cast<to=1>(weights_of_heads)
weight_of_point = Unsqueeze(weights32, last)
any_coefficient = Mul(weight_of_corner, weight_of_point)
coefficient = Where(has, any_coefficient, none32)
coefficient_of = Unsqueeze(coefficient, last)
value_of_heads = Transpose<perm=[0, 2, 1, 3]>(value)
value32 = Cast<to=1>(value_of_heads)
one_behind = Constant<value_ints=[0, 0, 0, 0, 0, 0, 1, 0]>()
rows = Pad(value32, one_behind)
corners = GatherND<batch_dims=2>(rows, index_of)
terms = Mul(corners, coefficient_of)
summed_axes = Constant<value_ints=[3, 4]>()
sums = ReduceSum<keepdims=0>(terms, summed_axes)
sums_of_queries = Transpose<perm=[0, 2, 1, 3]>(sums)
y = CastLike(sums_of_queries, value)
)";
  return Function{std::string(name) + (points.empty() ? "" : "_" + joined(points, "_")), std::move(body)};
}

std::vector<DropIn> MultiScaleDeformableAttention::drop_ins() {
  const auto from_nvidia = [](std::string_view plugin_version) -> DropIn {
    return {.plugin_name = "MultiscaleDeformableAttnPlugin_TRT",
            .version = plugin_version,
            .fields = {},
            .doc = "NVIDIA's plugin of TensorRT 8.5 and later; the start of each map is computed from the maps' sizes",
            .inputs = {"value", "spatial_shapes", "", "sampling_locations", "attention_weights"}};
  };
  return {from_nvidia("1"), from_nvidia("2")};
}

}  // namespace graft::ops

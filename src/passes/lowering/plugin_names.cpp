// Plugins of other libraries that native layers compute exactly. Networks carry their names because an exporter or a
// script wrote them for a plugin library: mmdeploy's, or NVIDIA's plugins, many of which TensorRT 11 no longer has.
//
//   grid_sampler<interpolation_mode=1>(x, grid)   becomes   GridSample<mode="nearest">(x, grid)
//   Reorg_TRT<stride=2>(x)                        becomes   Reshape, SpaceToDepth<blocksize=2>, Reshape
//   MMCVRoiAlign(x, rois)                         becomes   RoiAlign(x, rois[:, 1:], rois[:, 0])
//   NMSDynamic_TRT(location, prior, score)        becomes   Mul, Add ... (decoded boxes), BatchedNMSDynamic_TRT, Concat
//
// The last one is a plugin too; the pass lower_drop_ins replaces it by CombinedNonMaxSuppression.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "passes/lowering/lowering.hpp"

namespace graft::passes {
namespace {

/// Returns whether inputs 0 to `count` - 1 of the node are present. Otherwise stores the reason.
bool has_inputs(Site& site, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) {
    if (site.has_input(i)) continue;
    site.no(fmt::format("it lacks input {}, counted from 0", i));
    return false;
  }
  return true;
}

/// Returns whether the rank of an input is known and equals `rank`.
bool has_rank(Site& site, std::size_t input, std::size_t rank) {
  const Shape* shape = site.shape(input);
  return shape != nullptr && shape->size() == rank;
}

/// Returns the attributes of the RoiAlign that replaces an MMCVRoiAlign or one level of an MMCVMultiLevelRoiAlign, as
/// text.
std::string region_attributes(const onnx::Node& node, bool is_aligned, std::int64_t samples, double scale) {
  return fmt::format(
      "coordinate_transformation_mode=\"{}\", mode=\"avg\", output_height={}, output_width={}, sampling_ratio={}, "
      "spatial_scale={}",
      is_aligned ? "half_pixel" : "output_half_pixel", node.int_or("output_height", 7), node.int_or("output_width", 7),
      samples, real_text(scale));
}

/// Writes nodes that split regions, [n, 5] with the columns item, x1, y1, x2, y2, into `items`, i64 [n], and `corners`,
/// [n, 4].
void split_regions(Replacement& result, const std::string& regions) {
  result.line(fmt::format("item, corners = Split<axis=1>({}, {})", regions, result.ints("columns", {1, 4})));
  result.line(fmt::format("item_of_region = Squeeze(item, {})", result.ints("last", {1})));
  result.line("items = Cast<to=7>(item_of_region)");
}

}  // namespace

std::optional<Replacement> lower_grid_sampler(Site& site) {
  if (!has_inputs(site, 2)) return std::nullopt;
  constexpr std::array modes{"bilinear", "nearest", "bicubic"};
  constexpr std::array paddings{"zeros", "border", "reflection"};
  const std::int64_t mode = site.node().int_or("interpolation_mode", 0);
  const std::int64_t padding = site.node().int_or("padding_mode", 0);
  if (mode < 0 || mode > 2) return site.no(fmt::format("interpolation_mode is {}; it must be 0, 1 or 2", mode));
  if (padding < 0 || padding > 2) return site.no(fmt::format("padding_mode is {}; it must be 0, 1 or 2", padding));
  Replacement result;
  result.line(fmt::format("y0 = GridSample<mode=\"{}\", padding_mode=\"{}\", align_corners={}>(x0, x1)",
                          modes[static_cast<std::size_t>(mode)], paddings[static_cast<std::size_t>(padding)],
                          site.node().int_or("align_corners", 0) != 0 ? 1 : 0));
  result.summary = "GridSample";
  return result;
}

std::optional<Replacement> lower_running_extreme(Site& site) {
  if (!has_inputs(site, 1)) return std::nullopt;
  const Shape* shape = site.shape(0);
  if (shape == nullptr || shape->empty()) return site.no("the rank of its input is unknown, or 0");
  if (!site.is_real(0)) return site.no_type(0);
  const auto rank = static_cast<std::int64_t>(shape->size());
  const std::int64_t given = site.node().int_or("dim", 0);
  const std::int64_t axis = given < 0 ? given + rank : given;
  if (axis < 0 || axis >= rank) return site.no(fmt::format("dim is {}, and the rank of its input is {}", given, rank));
  const auto length = site.size(0, axis);
  if (!length) return site.no_size("the length of its axis is dynamic");
  if (*length < 1) return site.no("its axis has no elements");
  const bool is_max = site.node().op_type == "cummax";

  Replacement result;
  const std::string along = result.ints("along", {axis});
  const std::string front = result.ints("front", {0});
  const std::string end = result.ints("end", {*length});
  std::string values = "x0";
  // The positions start as 0, 1, 2 ... along the axis.
  std::vector<std::int64_t> dims(static_cast<std::size_t>(rank), 1);
  dims[static_cast<std::size_t>(axis)] = *length;
  std::vector<std::int64_t> counted(static_cast<std::size_t>(*length));
  for (std::size_t i = 0; i < counted.size(); ++i) counted[i] = static_cast<std::int64_t>(i);
  result.line("shape = Shape(x0)");
  result.line(fmt::format("at = Expand({}, shape)", result.constant("counted", ints_tensor(dims, counted))));
  std::string positions = "at";
  int steps = 0;
  for (std::int64_t distance = 1; distance < *length; distance *= 2, ++steps) {
    const std::string split = result.ints(fmt::format("split{}", steps), {distance});
    const std::string rest = result.ints(fmt::format("rest{}", steps), {*length - distance});
    const auto part = [&](const std::string& of, const std::string& name, const std::string& from,
                          const std::string& to) {
      result.line(fmt::format("{}{} = Slice({}, {}, {}, {})", name, steps, of, from, to, along));
      return fmt::format("{}{}", name, steps);
    };
    const std::string head = part(values, "head", front, split);
    const std::string later = part(values, "later", split, end);
    const std::string before = part(values, "before", front, rest);
    const std::string head_at = part(positions, "head_at", front, split);
    const std::string later_at = part(positions, "later_at", split, end);
    const std::string before_at = part(positions, "before_at", front, rest);
    // A later element wins a tie, and a NaN wins over everything that follows it.
    result.line(fmt::format("wins{} = {}({}, {})", steps, is_max ? "GreaterOrEqual" : "LessOrEqual", later, before));
    result.line(fmt::format("not_a_number{} = IsNaN({})", steps, later));
    result.line(fmt::format("is_later{0} = Or(wins{0}, not_a_number{0})", steps));
    result.line(fmt::format("best{0} = Where(is_later{0}, {1}, {2})", steps, later, before));
    result.line(fmt::format("best_at{0} = Where(is_later{0}, {1}, {2})", steps, later_at, before_at));
    result.line(fmt::format("values{0} = Concat<axis={1}>({2}, best{0})", steps, axis, head));
    result.line(fmt::format("positions{0} = Concat<axis={1}>({2}, best_at{0})", steps, axis, head_at));
    values = fmt::format("values{}", steps);
    positions = fmt::format("positions{}", steps);
  }
  result.line(fmt::format("y0 = Identity({})", values));
  if (site.is_used(1)) result.line(fmt::format("y1 = Identity({})", positions));
  result.summary = fmt::format("{} comparisons with the elements 1, 2, 4 ... positions before", steps);
  return result;
}

std::optional<Replacement> lower_mmcv_roi_align(Site& site) {
  if (!has_inputs(site, 2)) return std::nullopt;
  const onnx::Node& node = site.node();
  if (!has_rank(site, 1, 2) || site.size(1, 1).value_or(5) != 5)
    return site.no("its second input does not have five columns: the item, x1, y1, x2 and y2");
  if (const std::string mode = node.string_or("mode", node.string_or("pool_mode", "avg")); mode != "avg")
    return site.no(fmt::format("its mode is {}; RoiAlign computes only averages in the same way", mode));
  const std::int64_t samples = node.int_or("sampling_ratio", 0);
  const double scale = node.float_or("spatial_scale", 1);
  if (!(scale > 0)) return site.no("its spatial_scale is not positive");
  Replacement result;
  split_regions(result, "x1");
  result.line(
      fmt::format("y0 = RoiAlign<{}>(x0, corners, items)",
                  region_attributes(node, node.int_or("aligned", 1) != 0, std::max<std::int64_t>(samples, 0), scale)));
  result.summary = "Split and RoiAlign";
  return result;
}

std::optional<Replacement> lower_mmcv_multi_level_roi_align(Site& site) {
  if (!has_inputs(site, std::max<std::size_t>(2, site.node().inputs.size()))) return std::nullopt;
  const onnx::Node& node = site.node();
  const auto levels = static_cast<std::int64_t>(node.inputs.size()) - 1;
  if (!has_rank(site, 0, 2) || site.size(0, 1).value_or(5) != 5)
    return site.no("its first input does not have five columns: the item, x1, y1, x2 and y2");
  const onnx::NodeAttribute* given = node.attribute("featmap_strides");
  const auto* found = given == nullptr ? nullptr : given->get<std::vector<float>>();
  const std::vector<float> strides = found == nullptr ? std::vector<float>() : *found;
  if (levels < 1 || static_cast<std::int64_t>(strides.size()) < levels)
    return site.no("it has fewer featmap_strides than feature maps");
  if (node.int_or("pool_mode", 0) != 1)
    return site.no("its pool_mode is not 1, and RoiAlign computes only averages in the same way");
  if (site.type(0) != onnx::ElementType::f32) return site.no("its regions are not f32");
  const std::int64_t samples = node.int_or("sampling_ratio", 2);
  const bool is_aligned = node.int_or("aligned", 0) != 0;
  const double finest = static_cast<double>(node.int_or("finest_scale", 56));
  if (!(finest > 0)) return site.no("its finest_scale is not positive");

  Replacement result;
  split_regions(result, "x0");
  result.line("left, top, right, bottom = Split<axis=1>(corners)");
  result.line("wide = Sub(right, left)");
  result.line("high = Sub(bottom, top)");
  if (const double factor = node.float_or("roi_scale_factor", -1); factor > 0) {
    // The plugin counts the pixels of a region with both ends, and keeps its center.
    const std::string one = result.number("one", 1);
    const std::string half = result.number("half", 0.5);
    const std::string share = result.number("share", factor / 2);
    for (const auto& [low, high, size] : {std::array{"left", "right", "wide"}, std::array{"top", "bottom", "high"}}) {
      result.line(fmt::format("{}_ends = Add({}, {})", size, low, high));
      result.line(fmt::format("{0}_center = Mul({0}_ends, {1})", size, half));
      result.line(fmt::format("{0}_pixels = Add({0}, {1})", size, one));
      result.line(fmt::format("{0}_part = Mul({0}_pixels, {1})", size, share));
      result.line(fmt::format("{0}_reach = Sub({0}_part, {1})", size, half));
      result.line(fmt::format("{0}_new = Sub({1}_center, {1}_reach)", low, size));
      result.line(fmt::format("{0}_new = Add({1}_center, {1}_reach)", high, size));
    }
    result.line("regions = Concat<axis=1>(left_new, top_new, right_new, bottom_new)");
  } else {
    result.line("regions = Identity(corners)");
  }
  result.line("area = Mul(wide, high)");
  result.line("side = Sqrt(area)");
  result.line(fmt::format("ratio = Div(side, {})", result.number("finest", finest)));
  result.line(fmt::format("size = Add(ratio, {})", result.number("tiny", 1e-6)));
  const std::string as_map = result.ints("as_map", {-1, 1, 1, 1});
  std::string pooled;
  for (std::int64_t level = 0; level < levels; ++level) {
    const auto stride = static_cast<double>(strides[static_cast<std::size_t>(level)]);
    if (!(stride > 0)) return site.no("one of its featmap_strides is not positive");
    result.line(fmt::format("pooled{} = RoiAlign<{}>(x{}, regions, items)", level,
                            region_attributes(node, is_aligned, std::max<std::int64_t>(samples, 0), 1 / stride),
                            level + 1));
    if (level == 0) {
      pooled = "pooled0";
      continue;
    }
    // A region belongs to level k or a later one if its side is at least 2^k times the finest scale.
    const std::string bound = result.number(fmt::format("bound{}", level), std::exp2(static_cast<double>(level)));
    result.line(fmt::format("is_beyond{} = GreaterOrEqual(size, {})", level, bound));
    result.line(fmt::format("chosen{0} = Reshape(is_beyond{0}, {1})", level, as_map));
    result.line(fmt::format("up_to{0} = Where(chosen{0}, pooled{0}, {1})", level, pooled));
    pooled = fmt::format("up_to{}", level);
  }
  result.line(fmt::format("y0 = Identity({})", pooled));
  result.summary = fmt::format("{} RoiAlign, of which each region selects one", levels);
  return result;
}

std::optional<Replacement> lower_gather_topk(Site& site) {
  if (!has_inputs(site, 2)) return std::nullopt;
  const Shape* data = site.shape(0);
  const Shape* indices = site.shape(1);
  if (data == nullptr || indices == nullptr) return site.no("the rank of an input is unknown");
  if (indices->empty() || indices->size() > data->size())
    return site.no("its indices have a higher rank than its data");
  Replacement result;
  result.line("positions = Cast<to=7>(x1)");
  result.line(fmt::format("tuples = Unsqueeze(positions, {})", result.ints("last", {-1})));
  result.line(fmt::format("y0 = GatherND<batch_dims={}>(x0, tuples)", indices->size() - 1));
  result.summary = "GatherND";
  return result;
}

std::optional<Replacement> lower_plugin_instance_norm(Site& site) {
  if (!has_inputs(site, 3)) return std::nullopt;
  Replacement result;
  result.line(fmt::format("y0 = InstanceNormalization<epsilon={}>(x0, x1, x2)",
                          real_text(site.node().float_or("epsilon", 1e-5F))));
  result.summary = "InstanceNormalization";
  return result;
}

std::optional<Replacement> lower_plugin_group_norm(Site& site) {
  if (!has_inputs(site, 3)) return std::nullopt;
  const onnx::Node& node = site.node();
  const Shape* shape = site.shape(0);
  if (shape == nullptr || shape->size() < 3) return site.no("the rank of its input is unknown, or less than 3");
  if (!site.is_real(0)) return site.no_type(0);
  const std::int64_t groups = node.int_or("num_groups", 0);
  if (groups < 1) return site.no("its number of groups is not positive");
  check_table({groups});
  Replacement result;
  const std::string x = result.in_f32("x0", site.type(0));
  write_group_normalization(result, "shifted", x, shape->size(),
                            {.groups = groups,
                             .epsilon = real_text(node.float_or("epsilon", node.float_or("eps", 1e-5F))),
                             .scale = result.in_f32("x1", site.type(1)),
                             .shift = result.in_f32("x2", site.type(2))});
  result.give("y0", site.type(0), "Identity(shifted)");
  result.summary = "InstanceNormalization of the groups, Mul and Add";
  return result;
}

std::optional<Replacement> lower_coordinates(Site& site) {
  if (!has_inputs(site, 1)) return std::nullopt;
  if (!has_rank(site, 0, 4)) return site.no("its input does not have rank 4");
  if (!site.is_real(0)) return site.no_type(0);
  const auto sizes = site.sizes(0, 2);
  if (!sizes) return site.no_size("the size of its images is dynamic");
  const std::int64_t height = sizes->front();
  const std::int64_t width = sizes->back();
  if (height < 2 || width < 2) return site.no("its images have a side of less than 2 pixels");
  check_table({2, height, width});
  // The plugin steps through rows by the step of columns, and the other way round: for images that are not square its
  // coordinates do not end at 1. A network was trained with what the plugin computes, so they are the same here.
  const std::int64_t pixels = height * width;
  std::vector<double> values(static_cast<std::size_t>(2 * pixels));
  for (std::int64_t i = 0; i < pixels; ++i) {
    const std::int64_t row = i / width;
    const std::int64_t other = (i + pixels) % height;
    values[static_cast<std::size_t>(i)] = -1 + static_cast<double>(row) * (2.0 / static_cast<double>(width - 1));
    values[static_cast<std::size_t>(i + pixels)] =
        -1 + static_cast<double>(other) * (2.0 / static_cast<double>(height - 1));
  }
  Replacement result;
  std::string table = result.constant("coordinates", f32_tensor({1, 2, height, width}, values));
  if (site.type(0) != onnx::ElementType::f32) {
    result.line(fmt::format("rounded = Cast<to={}>({})", static_cast<int>(site.type(0)), table));
    table = "rounded";
  }
  result.line("whole = Shape(x0)");
  result.line(fmt::format("items = Slice(whole, {}, {})", result.ints("from", {0}), result.ints("to", {1})));
  result.line(fmt::format("shape = Concat<axis=0>(items, {})", result.ints("map", {2, height, width})));
  result.line(fmt::format("maps = Expand({}, shape)", table));
  result.line("y0 = Concat<axis=1>(x0, maps)");
  result.summary = "Concat with constant coordinates";
  return result;
}

std::optional<Replacement> lower_batch_tile(Site& site) {
  if (!has_inputs(site, 2)) return std::nullopt;
  if (!has_rank(site, 1, 4)) return site.no("its second input does not have rank 4");
  Replacement result;
  result.line("whole = Shape(x0)");
  result.line(fmt::format("items = Slice(whole, {}, {})", result.ints("from", {0}), result.ints("to", {1})));
  result.line(fmt::format("shape = Concat<axis=0>(items, {})", result.ints("one_each", {1, 1, 1})));
  result.line("y0 = Expand(x1, shape)");
  result.summary = "Expand";
  return result;
}

std::optional<Replacement> lower_special_slice(Site& site) {
  if (!has_inputs(site, 1)) return std::nullopt;
  if (site.size(0, -1).value_or(6) != 6) return site.no("its input does not have six columns");
  Replacement result;
  result.line(fmt::format("y0 = Slice(x0, {}, {}, {})", result.ints("from", {0}), result.ints("to", {4}),
                          result.ints("along", {-1})));
  result.summary = "Slice";
  return result;
}

std::optional<Replacement> lower_plugin_clip(Site& site) {
  if (!has_inputs(site, 1)) return std::nullopt;
  if (!site.is_real(0)) return site.no_type(0);
  const onnx::Node& node = site.node();
  if (node.attribute("clipMin") == nullptr || node.attribute("clipMax") == nullptr)
    return site.no("it lacks clipMin or clipMax");
  Replacement result;
  result.line(fmt::format("y0 = Clip(x0, {}, {})", result.number("least", node.float_or("clipMin", 0), site.type(0)),
                          result.number("most", node.float_or("clipMax", 0), site.type(0))));
  result.summary = "Clip";
  return result;
}

std::optional<Replacement> lower_reorg(Site& site) {
  if (!has_inputs(site, 1)) return std::nullopt;
  const auto sizes = has_rank(site, 0, 4) ? site.sizes(0, 1) : std::nullopt;
  if (!sizes)
    return site.no_size("its input does not have rank 4, or its channels or the size of its images are dynamic");
  const std::int64_t stride = site.node().int_or("stride", 0);
  if (stride < 1) return site.no("its stride is not positive");
  const std::int64_t channels = (*sizes)[0];
  const std::int64_t height = (*sizes)[1];
  const std::int64_t width = (*sizes)[2];
  if (channels % (stride * stride) != 0 || height % stride != 0 || width % stride != 0) {
    return site.no(fmt::format(
        "its stride {} does not divide its height and width, or the square of it does not divide its channels",
        stride));
  }
  // The plugin, like darknet, reads its input as if it were the result of the opposite step.
  Replacement result;
  const std::vector<std::int64_t> spread{0, channels / (stride * stride), height * stride, width * stride};
  const std::vector<std::int64_t> packed{0, channels * stride * stride, height / stride, width / stride};
  result.line(fmt::format("spread = Reshape(x0, {})", result.ints("as_spread", spread)));
  result.line(fmt::format("blocks = SpaceToDepth<blocksize={}>(spread)", stride));
  result.line(fmt::format("y0 = Reshape(blocks, {})", result.ints("as_packed", packed)));
  result.summary = "Reshape, SpaceToDepth and Reshape";
  return result;
}

std::optional<Replacement> lower_flatten_concat(Site& site) {
  if (!has_inputs(site, site.node().inputs.size())) return std::nullopt;
  const onnx::Node& node = site.node();
  if (node.int_or("axis", node.int_or("concatAxis", 1)) != 1) return site.no("its axis is not 1");
  if (node.int_or("ignoreBatch", 0) != 0) return site.no("it ignores the batch");
  Replacement result;
  std::vector<std::string> flat;
  for (std::size_t i = 0; i < node.inputs.size(); ++i) {
    result.line(fmt::format("flat{0} = Flatten(x{0})", i));
    flat.push_back(fmt::format("flat{}", i));
  }
  result.line(fmt::format("joined = Concat<axis=1>({})", fmt::join(flat, ", ")));
  result.line(fmt::format("y0 = Unsqueeze(joined, {})", result.ints("sides", {2, 3})));
  result.summary = "Flatten and Concat";
  return result;
}

std::optional<Replacement> lower_plugin_crop_and_resize(Site& site) {
  if (!has_inputs(site, 2)) return std::nullopt;
  const onnx::Node& node = site.node();
  if (node.inputs.size() != 2 || !has_rank(site, 0, 4))
    return site.no("it does not have two inputs, the first of rank 4");
  if (!site.is_real(0)) return site.no_type(0);
  if (site.type(1) != onnx::ElementType::f32) return site.no("its regions are not f32");
  const auto sizes = site.sizes(0, 2);
  if (!sizes) return site.no_size("the size of its images is dynamic");
  const std::array sides{node.int_or("crop_height", 0), node.int_or("crop_width", 0)};
  if (sides[0] < 1 || sides[1] < 1) return site.no("its crop_height or crop_width is not positive");
  check_table({sides[0], sides[1]});

  Replacement result;
  // Corners are y1, x1, y2, x2 as shares of the image, each of shape [N, R, 1, 1].
  result.line(fmt::format("boxes = Reshape(x1, {})", result.ints("as_boxes", {0, 0, 4})));
  result.line(fmt::format("spaced = Unsqueeze(boxes, {})", result.ints("end", {3})));
  result.line("top, left, bottom, right = Split<axis=2>(spaced)");
  const auto positions = [&](const std::string& axis, const char* low, const char* high, std::int64_t count,
                             std::int64_t size) {
    const std::string reach = result.number(axis + "_reach", static_cast<double>(size - 1));
    if (count == 1) {
      result.line(fmt::format("{}_ends = Add({}, {})", axis, low, high));
      result.line(fmt::format("{0}_middle = Mul({0}_ends, {1})", axis, result.number(axis + "_half", 0.5)));
      result.line(fmt::format("{0}_at = Mul({0}_middle, {1})", axis, reach));
    } else {
      std::vector<double> counted(static_cast<std::size_t>(count));
      for (std::size_t i = 0; i < counted.size(); ++i) counted[i] = static_cast<double>(i);
      result.line(fmt::format("{}_span = Sub({}, {})", axis, high, low));
      result.line(fmt::format("{0}_pixels = Mul({0}_span, {1})", axis, reach));
      result.line(fmt::format("{0}_step = Div({0}_pixels, {1})", axis,
                              result.number(axis + "_steps", static_cast<double>(count - 1))));
      result.line(fmt::format("{0}_offsets = Mul({0}_step, {1})", axis,
                              result.constant(axis + "_counted", f32_tensor({count}, counted))));
      result.line(fmt::format("{}_start = Mul({}, {})", axis, low, reach));
      result.line(fmt::format("{0}_at = Add({0}_start, {0}_offsets)", axis));
    }
    // The position of a sample in a map, and whether it lies inside.
    result.line(fmt::format("{0}_above = GreaterOrEqual({0}_at, {1})", axis, result.number(axis + "_zero", 0)));
    result.line(fmt::format("{0}_below = LessOrEqual({0}_at, {1})", axis, reach));
    result.line(fmt::format("{0}_inside = And({0}_above, {0}_below)", axis));
    const double unit = size > 1 ? 2.0 / static_cast<double>(size - 1) : 0;
    result.line(fmt::format("{0}_scaled = Mul({0}_at, {1})", axis, result.number(axis + "_unit", unit)));
    result.line(fmt::format("{0}_grid = Sub({0}_scaled, {1})", axis, result.number(axis + "_one", size > 1 ? 1 : 0)));
  };
  positions("y", "top", "bottom", sides[0], sizes->front());
  positions("x", "left", "right", sides[1], sizes->back());
  // y has a column for each row of a crop, x one for each column: [N, R, height] and [N, R, width].
  const std::string rows = result.ints("rows", {0, 0, sides[0], 1});
  const std::string columns = result.ints("columns", {0, 0, 1, sides[1]});
  for (const auto& [axis, shape] : {std::pair("y", rows), std::pair("x", columns)}) {
    result.line(fmt::format("{0}_coordinates = Reshape({0}_grid, {1})", axis, shape));
    result.line(fmt::format("{0}_valid = Reshape({0}_inside, {1})", axis, shape));
  }
  const std::string crop = result.ints("crop", {1, 1, sides[0], sides[1]});
  result.line(fmt::format("y_all = Expand(y_coordinates, {})", crop));
  result.line(fmt::format("x_all = Expand(x_coordinates, {})", crop));
  const std::string last = result.ints("pair", {-1});
  result.line(fmt::format("x_pairs = Unsqueeze(x_all, {})", last));
  result.line(fmt::format("y_pairs = Unsqueeze(y_all, {})", last));
  result.line("pairs = Concat<axis=-1>(x_pairs, y_pairs)");
  // All crops of an item are the rows of one image: [N, R * height, width, 2].
  result.line(fmt::format("grid = Reshape(pairs, {})", result.ints("as_grid", {0, -1, sides[1], 2})));
  const std::string x = result.in_f32("x0", site.type(0));
  result.line(
      fmt::format("sampled = GridSample<mode=\"bilinear\", padding_mode=\"border\", align_corners=1>({}, grid)", x));
  // [N, C, R * height, width] becomes [N, R, C, height, width].
  result.line(fmt::format("channels = Shape({})", x));
  result.line(fmt::format("outer = Slice(channels, {}, {})", result.ints("from", {0}), result.ints("to", {2})));
  result.line(fmt::format("five = Concat<axis=0>(outer, {})", result.ints("inner", {-1, sides[0], sides[1]})));
  result.line("crops = Reshape(sampled, five)");
  result.line("turned = Transpose<perm=[0, 2, 1, 3, 4]>(crops)");
  result.line("valid = And(y_valid, x_valid)");
  result.line(fmt::format("visible = Unsqueeze(valid, {})", result.ints("of_channels", {2})));
  result.give("y0", site.type(0), fmt::format("Where(visible, turned, {})", result.number("outside", 0)));
  result.summary = "GridSample, and 0 outside the image";
  return result;
}

namespace {

/// The fields of NMS_TRT and NMSDynamic_TRT that a network must have, because NVIDIA documents no defaults.
constexpr std::array detection_integers{"backgroundLabelId", "numClasses", "topK", "keepTopK"};
constexpr std::array detection_numbers{"confidenceThreshold", "nmsThreshold"};

/// The values of codeType, the field of the NMS plugin that selects how boxes are encoded.
enum DetectionCode : std::uint8_t { corner, center_size, corner_size, tf_center };

/// Writes nodes that compute `boxes` (N,boxes,classes or 1,4), the corners of the boxes that `offsets` encodes relative
/// to `prior` (N,boxes,1,4).
void decode_detections(Replacement& result, std::int64_t code) {
  const std::string halves = result.ints("halves", {2, 2});
  std::string offsets = "offsets";
  if (code == tf_center) {  // y, x, height, width
    result.line(fmt::format("in_order = Gather<axis=3>(offsets, {})", result.ints("order", {1, 0, 3, 2})));
    offsets = "in_order";
  }
  result.line(fmt::format("first, second = Split<axis=3>({}, {})", offsets, halves));
  result.line(fmt::format("low, high = Split<axis=3>(prior, {})", halves));
  if (code == corner) {
    result.line("from = Add(low, first)");
    result.line("to = Add(high, second)");
  } else {
    result.line("size = Sub(high, low)");
    if (code == corner_size) {
      result.line("moved_low = Mul(first, size)");
      result.line("moved_high = Mul(second, size)");
      result.line("from = Add(low, moved_low)");
      result.line("to = Add(high, moved_high)");
    } else {
      result.line("half32 = Constant<value_float=0.5>()");
      result.line("half = CastLike(half32, size)");
      result.line("both = Add(low, high)");
      result.line("middle = Mul(both, half)");
      result.line("moved = Mul(first, size)");
      result.line("center = Add(moved, middle)");
      result.line("growth = Exp(second)");
      result.line("extent = Mul(growth, size)");
      result.line("reach = Mul(extent, half)");
      result.line("from = Sub(center, reach)");
      result.line("to = Add(center, reach)");
    }
  }
  result.line("boxes = Concat<axis=3>(from, to)");
}

}  // namespace

std::optional<Replacement> lower_detection_output(Site& site) {
  if (!has_inputs(site, 3)) return std::nullopt;
  const onnx::Node& node = site.node();
  if (!site.is_real(0)) return site.no_type(0);
  for (const char* field : detection_integers) {
    if (node.attribute(field) == nullptr) return site.no(fmt::format("`{}` is required and missing", field));
  }
  for (const char* field : detection_numbers) {
    if (node.attribute(field) == nullptr) return site.no(fmt::format("`{}` is required and missing", field));
  }
  const std::int64_t classes = node.int_or("numClasses", 0);
  const std::int64_t code = node.int_or("codeType", tf_center);
  const auto order = node.ints("inputOrder").value_or(std::vector<std::int64_t>{0, 2, 1});
  if (classes < 1) return site.no(fmt::format("numClasses is {}; it must be at least 1", classes));
  if (code < corner || code > tf_center) return site.no(fmt::format("codeType is {}; it must be 0, 1, 2 or 3", code));
  constexpr std::array<std::int64_t, 3> inputs{0, 1, 2};
  if (!std::is_permutation(order.begin(), order.end(), inputs.begin(), inputs.end())) {
    return site.no(fmt::format("inputOrder is [{}]; it must contain 0, 1 and 2", fmt::join(order, ", ")));
  }
  for (std::size_t i = 0; i < order.size(); ++i) {
    if (!has_rank(site, i, 4)) return site.no(fmt::format("input {} has not the rank 4, or its rank is unknown", i));
  }
  const auto prior_input = static_cast<std::size_t>(order[2]);
  if (site.size(prior_input, 1).value_or(2) != 2) {
    return site.no(
        fmt::format("input {}, the prior boxes according to inputOrder, has the shape {}; it must be "
                    "N,2,boxes * 4,1",
                    prior_input, to_string(*site.shape(prior_input))));
  }
  const bool shares_location = node.int_or("shareLocation", 1) != 0;
  const bool is_normalized = node.int_or("isNormalized", 1) != 0;

  Replacement result;
  std::string given_prior = fmt::format("x{}", order[2]);
  // A plugin without a dynamic batch has the same prior boxes for all items.
  if (node.op_type == "NMS_TRT" && node.int_or("isBatchAgnostic", 1) != 0) {
    result.line(fmt::format("first_prior = Slice({}, {}, {}, {})", given_prior, result.ints("begin", {0}),
                            result.ints("end", {1}), result.ints("items_axis", {0})));
    given_prior = "first_prior";
  }
  result.line(fmt::format("priors = Reshape({}, {})", given_prior, result.ints("prior_shape", {0, 2, -1, 1, 4})));
  result.line("prior_part, variance_part = Split<axis=1>(priors)");
  const std::string axis_1 = result.ints("axis_1", {1});
  result.line(fmt::format("prior = Squeeze(prior_part, {})", axis_1));
  result.line(fmt::format("location = Reshape(x{}, {})", order[0],
                          result.ints("location_shape", {0, -1, shares_location ? 1 : classes, 4})));
  if (node.int_or("varianceEncodedInTarget", 0) != 0) {
    result.line("offsets = Identity(location)");
  } else {
    result.line(fmt::format("variance = Squeeze(variance_part, {})", axis_1));
    result.line("offsets = Mul(location, variance)");
  }
  decode_detections(result, code);
  result.line(fmt::format("logits = Reshape(x{}, {})", order[1], result.ints("score_shape", {0, -1, classes})));
  result.line(fmt::format("scores = {}(logits)", node.int_or("confSigmoid", 0) != 0 ? "Sigmoid" : "Identity"));
  result.line(fmt::format(
      "count, found_boxes, found_scores, found_classes = BatchedNMSDynamic_TRT<shareLocation={}, backgroundLabelId={}, "
      "numClasses={}, topK={}, keepTopK={}, scoreThreshold={}, iouThreshold={}, isNormalized={}, clipBoxes=1>(boxes, "
      "scores)",
      shares_location ? 1 : 0, node.int_or("backgroundLabelId", -1), classes, node.int_or("topK", 0),
      node.int_or("keepTopK", 0), real_text(node.float_or("confidenceThreshold", 0)),
      real_text(node.float_or("nmsThreshold", 0)), is_normalized ? 1 : 0));
  const std::string axis_2 = result.ints("axis_2", {2});
  result.line(fmt::format("score_column = Unsqueeze(found_scores, {})", axis_2));
  result.line(fmt::format("class_column = Unsqueeze(found_classes, {})", axis_2));
  result.line("column_shape = Shape(score_column)");
  result.line("items = Shape<start=0, end=1>(score_column)");
  result.line(fmt::format("item_count = Squeeze(items, {})", result.ints("axis_0", {0})));
  result.line(fmt::format("numbers = Range({}, item_count, {})", result.integer("zero", 0), result.integer("one", 1)));
  result.line(fmt::format("number_column = Reshape(numbers, {})", result.ints("number_shape", {-1, 1, 1})));
  result.line("typed_numbers = CastLike(number_column, score_column)");
  result.line("item_column = Expand(typed_numbers, column_shape)");
  result.line("rows = Concat<axis=2>(item_column, class_column, score_column, found_boxes)");
  result.line(fmt::format("y0 = Unsqueeze(rows, {})", axis_1));
  if (site.is_used(1)) {
    // The plugin declares its integers as f32; a file may declare both.
    const auto declared = node.output(1)->type.value_or(onnx::ElementType::i32);
    result.line(fmt::format("whole = Reshape(count, {})", result.ints("count_shape", {-1, 1, 1, 1})));
    result.line(fmt::format("y1 = Cast<to={}>(whole)", static_cast<std::int64_t>(declared)));
  }
  result.summary = "decoded boxes, and BatchedNMSDynamic_TRT";
  return result;
}

}  // namespace graft::passes

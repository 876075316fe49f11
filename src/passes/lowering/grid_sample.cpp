// The guards of GridSample: linear sampling of images or volumes by GatherND, where TensorRT is reported to compute
// GridSample wrongly, and where it has no GridSample of volumes.
//
//   y = GridSample(x, grid)   becomes
//     pixel  = ((grid + 1) * size - 1) / 2, or (grid + 1) / 2 * (size - 1) with align_corners
//     low    = floor(pixel), high = low + 1, part = pixel - low
//     y      = sum over the corners of x at the corner (GatherND), each times the product of its parts
//
// An image has four corners around a point, a volume eight. With padding_mode zeros the image gets a frame of zeros,
// and pixels are limited to the frame, so that every corner is a place in the image and none has to be left out. With
// padding_mode border pixels are limited to the image itself.
#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <numeric>
#include <string>
#include <vector>

#include "passes/lowering/lowering.hpp"
#include "passes/lowering/refused_forms.hpp"

namespace graft::passes {
namespace {

/// The sizes of an image or a volume in the order of the coordinates of a point: width, height, depth.
struct ImageSize {
  std::vector<std::int64_t> along;
  std::int64_t frame = 0;  ///< The number of zero pixels added at each side of the image or volume.

  [[nodiscard]] std::size_t axes() const { return along.size(); }
  [[nodiscard]] std::int64_t framed(std::size_t axis) const { return along[axis] + 2 * frame; }
  /// Returns the distance between neighbors along an axis, in elements of the flattened image (with its frame of
  /// zeros).
  [[nodiscard]] std::int64_t step(std::size_t axis) const {
    std::int64_t pixels = 1;
    for (std::size_t i = 0; i < axis; ++i) pixels *= framed(i);
    return pixels;
  }
};

/// Adds nodes that compute three tensors for each sampling point: `low_place`, the indices along all axes of the pixel
/// before the point; `low_part`, the weights of these indices; and `high_part`, the weights of the next indices.
/// `places` is the number of points.
void add_low_pixels(Replacement& result, const Site& site, const ImageSize& image, std::int64_t places) {
  const auto axes = static_cast<std::int64_t>(image.axes());
  const auto each = [&](const std::string& name, std::int64_t more) {
    std::vector<double> values;
    for (const std::int64_t size : image.along) values.push_back(static_cast<double>(size + more));
    return result.constant(name, f32_tensor({1, 1, axes}, values));
  };
  const auto first = static_cast<double>(-image.frame);
  const std::string one = result.constant("one", f32_tensor({}, {1}));
  const std::string half = result.constant("half", f32_tensor({}, {0.5}));
  const std::string points = result.in_f32("x1", site.type(1));
  result.line(fmt::format("points = Reshape({}, {})", points, result.ints("points_shape", {0, places, axes})));
  result.line(fmt::format("from_0 = Add(points, {})", one));
  if (site.node().int_or("align_corners", 0) != 0) {
    result.line(fmt::format("share = Mul(from_0, {})", half));
    result.line(fmt::format("anywhere = Mul(share, {})", each("spans", -1)));
  } else {
    result.line(fmt::format("doubled = Mul(from_0, {})", each("sizes", 0)));
    result.line(fmt::format("moved = Sub(doubled, {})", one));
    result.line(fmt::format("anywhere = Mul(moved, {})", half));
  }
  // Coordinates of the image, limited to its frame.
  result.line(fmt::format("reached = Max(anywhere, {})", result.constant("first", f32_tensor({}, {first}))));
  result.line(fmt::format("within = Min(reached, {})", each("last", image.frame - 1)));
  result.line("low = Floor(within)");
  result.line("high_part = Sub(within, low)");
  result.line(fmt::format("low_part = Sub({}, high_part)", one));
  result.line("low_place = Cast<to=int64>(low)");
}

/// Adds the nodes of add_low_pixels() and splits their results into the index and the weight along each axis. The names
/// of the results begin with `low` for the pixel before the point, and with `high` for the pixel after it. `places` is
/// the number of points.
void add_corners(Replacement& result, const Site& site, const ImageSize& image, std::int64_t places) {
  add_low_pixels(result, site, image, places);
  std::string low = "low_place";
  if (image.frame != 0) {
    result.line(fmt::format("low_in_frame = Add(low_place, {})", result.integer("frame", image.frame)));
    low = "low_in_frame";
  }
  std::vector<std::int64_t> ends;
  for (std::size_t axis = 0; axis < image.axes(); ++axis) ends.push_back(image.framed(axis) - 1);
  result.line(fmt::format("next = Add({}, {})", low, result.integer("step", 1)));
  result.line(fmt::format("high = Min(next, {})",
                          result.constant("end", ints_tensor({1, 1, static_cast<std::int64_t>(image.axes())}, ends))));
  for (std::size_t axis = 0; axis < image.axes(); ++axis) {
    const std::string which = result.ints(fmt::format("axis_{}", axis), {static_cast<std::int64_t>(axis)});
    const std::string step = result.integer(fmt::format("step_{}", axis), image.step(axis));
    for (const char* side : {"low", "high"}) {
      const std::string place = side == std::string("low") ? low : "high";
      result.line(fmt::format("{}_index_{} = Gather<axis=2>({}, {})", side, axis, place, which));
      result.line(fmt::format("{0}_{1} = Mul({0}_index_{1}, {2})", side, axis, step));
      result.line(fmt::format("{0}_part_{1} = Gather<axis=2>({0}_part, {2})", side, axis, which));
    }
  }
}

/// Adds nodes that compute the weighted sum of the pixels around each point, 4 in an image and 8 in a volume, and
/// returns the name of the sum.
std::string add_weighted_corners(Replacement& result, const ImageSize& image) {
  std::string sum;
  for (std::size_t corner = 0; corner < std::size_t{1} << image.axes(); ++corner) {
    std::string at;
    std::string weight;
    for (std::size_t i = image.axes(); i-- > 0;) {
      const std::string side = ((corner >> i) & 1U) == 0 ? "low" : "high";
      const std::string place = fmt::format("{}_{}", side, i);
      const std::string part = fmt::format("{}_part_{}", side, i);
      if (!at.empty()) {
        result.line(fmt::format("at_{}_{} = Add({}, {})", corner, i, at, place));
        result.line(fmt::format("weight_{}_{} = Mul({}, {})", corner, i, weight, part));
      }
      at = at.empty() ? place : fmt::format("at_{}_{}", corner, i);
      weight = weight.empty() ? part : fmt::format("weight_{}_{}", corner, i);
    }
    result.line(fmt::format("found_{} = GatherND<batch_dims=1>(pixels, {})", corner, at));
    result.line(fmt::format("weighted_{0} = Mul(found_{0}, {1})", corner, weight));
    if (!sum.empty()) result.line(fmt::format("sum_{0} = Add({1}, weighted_{0})", corner, sum));
    sum = fmt::format("{}_{}", sum.empty() ? "weighted" : "sum", corner);
  }
  return sum;
}

std::optional<Replacement> sample(Site& site, std::size_t axes) {
  const onnx::Node& node = site.node();
  if (!is_bilinear(node)) {
    return site.no(
        fmt::format("its mode is {}; only linear (bilinear) sampling is supported", node.string_or("mode", "linear")));
  }
  const std::string padding = node.string_or("padding_mode", "zeros");
  if (padding != "zeros" && padding != "border")
    return site.no(fmt::format("its padding_mode is {}; only zeros and border are supported", padding));
  const Shape* shape = site.shape(0);
  if (shape != nullptr && shape->size() != axes + 2) {
    return site.no(axes == 2 ? "its input is not a batch of images (rank 4)"
                             : "its input is not a batch of volumes (rank 5)");
  }
  const auto image = site.sizes(0, 1);
  const auto grid = site.sizes(1, 1);
  if (!image || !grid || image->size() != axes + 1 || grid->size() != axes + 1)
    return site.no_size("a size other than the batch is dynamic");
  if (!site.is_real(0) || !site.is_real(1)) return site.no_type(site.is_real(0) ? 1 : 0);
  const std::int64_t channels = (*image)[0];
  const ImageSize image_size{{image->rbegin(), image->rend() - 1}, padding == "zeros" ? 1 : 0};
  const auto product = [](auto begin, auto end) {
    return std::accumulate(begin, end, std::int64_t{1}, std::multiplies<>());
  };
  const std::int64_t places = product(grid->begin(), grid->end() - 1);
  if (product(image->begin(), image->end()) * places == 0) return site.no("one of its tensors has no elements");

  Replacement result;
  add_corners(result, site, image_size, places);
  std::string x = result.in_f32("x0", site.type(0));
  if (image_size.frame != 0) {
    std::vector<std::int64_t> frames;
    for (int side = 0; side < 2; ++side) {
      frames.insert(frames.end(), 2, 0);
      frames.insert(frames.end(), axes, 1);
    }
    result.line(fmt::format("framed = Pad({}, {})", x, result.ints("frames", frames)));
    x = "framed";
  }
  result.line(fmt::format("channels_last = Transpose<perm=[{}]>({})", axes == 2 ? "0, 2, 3, 1" : "0, 2, 3, 4, 1", x));
  const std::int64_t pixels = image_size.step(axes);
  result.line(fmt::format("pixels = Reshape(channels_last, {})", result.ints("pixels_shape", {0, pixels, channels})));
  const std::string sum = add_weighted_corners(result, image_size);
  result.line(fmt::format("channels_first = Transpose<perm=[0, 2, 1]>({})", sum));
  std::vector<std::int64_t> dims{0, channels};
  dims.insert(dims.end(), grid->begin(), grid->end() - 1);
  result.give("y0", site.type(0), fmt::format("Reshape(channels_first, {})", result.ints("y_shape", dims)));
  if (axes == 3 && padding == "border") {
    result.by_definition =
        "by definition: the border continues outside of the volume; OpenVINO has no GridSample of volumes, and the "
        "weights of ONNX Runtime are 0 for points far outside, so neither can verify this; the lowering is tested with "
        "results of ONNX Runtime for points nearby";
  }
  result.summary = fmt::format("GatherND of the {} nearest pixels of {} points", std::size_t{1} << axes, places);
  return result;
}

}  // namespace

std::optional<Replacement> sample_by_gather(Site& site) { return sample(site, 2); }

std::optional<Replacement> sample_volumes_by_gather(Site& site) { return sample(site, 3); }

}  // namespace graft::passes

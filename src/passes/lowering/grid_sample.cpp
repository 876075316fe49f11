// The guard of GridSample: bilinear sampling of images by GatherND, where TensorRT is reported to compute GridSample
// wrongly.
//
//   y = GridSample(x, grid)   becomes
//     pixel  = ((grid + 1) * size - 1) / 2, or (grid + 1) / 2 * (size - 1) with align_corners
//     low    = floor(pixel), high = low + 1, part = pixel - low
//     y      = sum over the four corners of x at the corner (GatherND), each times the product of its parts
//
// With padding_mode zeros the image gets a frame of zeros, and pixels are limited to the frame, so that every corner is
// a place in the image and none has to be left out. With padding_mode border pixels are limited to the image itself.
#include <fmt/format.h>

#include "passes/lowering/lowering.hpp"
#include "passes/lowering/refused_forms.hpp"

namespace graft::passes {
namespace {

struct ImageSize {
  std::int64_t height = 0;
  std::int64_t width = 0;
  std::int64_t frame = 0;  ///< The number of zero pixels added at each side of the image.

  [[nodiscard]] std::int64_t rows() const { return height + 2 * frame; }
  [[nodiscard]] std::int64_t columns() const { return width + 2 * frame; }
};

/// Adds nodes that compute three tensors for each sampling point: `low_place`, the column and row of the pixel to the
/// upper left of the point; `low_part`, the weights of this column and row; and `high_part`, the weights of the next
/// column and row. `places` is the number of points.
void add_low_pixels(Replacement& result, const Site& site, const ImageSize& image, std::int64_t places) {
  const auto pair = [&](const std::string& name, double x, double y) {
    return result.constant(name, f32_tensor({1, 1, 2}, {x, y}));
  };
  const auto size_x = static_cast<double>(image.width);
  const auto size_y = static_cast<double>(image.height);
  const auto frame = static_cast<double>(image.frame);
  const std::string one = result.constant("one", f32_tensor({}, {1}));
  const std::string half = result.constant("half", f32_tensor({}, {0.5}));
  const std::string points = result.in_f32("x1", site.type(1));
  result.line(fmt::format("points = Reshape({}, {})", points, result.ints("points_shape", {0, places, 2})));
  result.line(fmt::format("from_0 = Add(points, {})", one));
  if (site.node().int_or("align_corners", 0) != 0) {
    result.line(fmt::format("share = Mul(from_0, {})", half));
    result.line(fmt::format("anywhere = Mul(share, {})", pair("spans", size_x - 1, size_y - 1)));
  } else {
    result.line(fmt::format("doubled = Mul(from_0, {})", pair("sizes", size_x, size_y)));
    result.line(fmt::format("moved = Sub(doubled, {})", one));
    result.line(fmt::format("anywhere = Mul(moved, {})", half));
  }
  // Coordinates of the image, limited to its frame.
  result.line(fmt::format("reached = Max(anywhere, {})", pair("first", 0 - frame, 0 - frame)));
  result.line(fmt::format("within = Min(reached, {})", pair("last", size_x - 1 + frame, size_y - 1 + frame)));
  result.line("low = Floor(within)");
  result.line("high_part = Sub(within, low)");
  result.line(fmt::format("low_part = Sub({}, high_part)", one));
  result.line("low_place = Cast<to=int64>(low)");
}

/// Adds the nodes of add_low_pixels() and splits their results into the column, the row and the weights along both
/// axes. The names of the results begin with `low` for the pixel before the point, and with `high` for the pixel after
/// it. `places` is the number of points.
void add_corners(Replacement& result, const Site& site, const ImageSize& image, std::int64_t places) {
  add_low_pixels(result, site, image, places);
  std::string low = "low_place";
  if (image.frame != 0) {
    result.line(fmt::format("low_in_frame = Add(low_place, {})", result.integer("frame", image.frame)));
    low = "low_in_frame";
  }
  result.line(fmt::format("next = Add({}, {})", low, result.integer("step", 1)));
  result.line(fmt::format("high = Min(next, {})",
                          result.constant("end", ints_tensor({1, 1, 2}, {image.columns() - 1, image.rows() - 1}))));
  const std::string x_axis = result.ints("x_axis", {0});
  const std::string y_axis = result.ints("y_axis", {1});
  const std::string row_length = result.integer("row_length", image.columns());
  for (const char* side : {"low", "high"}) {
    const std::string place = side == std::string("low") ? low : "high";
    result.line(fmt::format("{}_x = Gather<axis=2>({}, {})", side, place, x_axis));
    result.line(fmt::format("{}_y = Gather<axis=2>({}, {})", side, place, y_axis));
    result.line(fmt::format("{0}_row = Mul({0}_y, {1})", side, row_length));
    result.line(fmt::format("{0}_part_x = Gather<axis=2>({0}_part, {1})", side, x_axis));
    result.line(fmt::format("{0}_part_y = Gather<axis=2>({0}_part, {1})", side, y_axis));
  }
}

/// Adds nodes that compute the weighted sum of the four pixels around each point, and returns its name.
std::string add_weighted_corners(Replacement& result) {
  std::string sum;
  for (const char* y : {"low", "high"}) {
    for (const char* across : {"low", "high"}) {
      const std::string corner = fmt::format("{}_{}", y, across);
      result.line(fmt::format("at_{} = Add({}_row, {}_x)", corner, y, across));
      result.line(fmt::format("found_{0} = GatherND<batch_dims=1>(pixels, at_{0})", corner));
      result.line(fmt::format("weight_{} = Mul({}_part_y, {}_part_x)", corner, y, across));
      result.line(fmt::format("weighted_{0} = Mul(found_{0}, weight_{0})", corner));
      if (sum.empty()) {
        sum = "weighted_" + corner;
      } else {
        result.line(fmt::format("sum_{0} = Add({1}, weighted_{0})", corner, sum));
        sum = "sum_" + corner;
      }
    }
  }
  return sum;
}

}  // namespace

std::optional<Replacement> sample_by_gather(Site& site) {
  const onnx::Node& node = site.node();
  if (!is_bilinear(node)) {
    return site.no(
        fmt::format("its mode is {}; only linear (bilinear) sampling is supported", node.string_or("mode", "linear")));
  }
  const std::string padding = node.string_or("padding_mode", "zeros");
  if (padding != "zeros" && padding != "border")
    return site.no(fmt::format("its padding_mode is {}; only zeros and border are supported", padding));
  const Shape* shape = site.shape(0);
  if (shape != nullptr && shape->size() != 4) return site.no("its input is not a batch of images (rank 4)");
  const auto image = site.sizes(0, 1);
  const auto grid = site.sizes(1, 1);
  if (!image || !grid || image->size() != 3 || grid->size() != 3)
    return site.no_size("a size other than the batch is dynamic");
  if (!site.is_real(0) || !site.is_real(1)) return site.no_type(site.is_real(0) ? 1 : 0);
  const std::int64_t channels = (*image)[0];
  const ImageSize image_size{(*image)[1], (*image)[2], padding == "zeros" ? 1 : 0};
  const std::int64_t places = (*grid)[0] * (*grid)[1];
  if (channels * image_size.height * image_size.width * places == 0)
    return site.no("one of its tensors has no elements");

  Replacement result;
  add_corners(result, site, image_size, places);
  std::string x = result.in_f32("x0", site.type(0));
  if (image_size.frame != 0) {
    result.line(fmt::format("framed = Pad({}, {})", x, result.ints("frames", {0, 0, 1, 1, 0, 0, 1, 1})));
    x = "framed";
  }
  result.line(fmt::format("channels_last = Transpose<perm=[0, 2, 3, 1]>({})", x));
  result.line(fmt::format("pixels = Reshape(channels_last, {})",
                          result.ints("pixels_shape", {0, image_size.rows() * image_size.columns(), channels})));
  const std::string sum = add_weighted_corners(result);
  result.line(fmt::format("channels_first = Transpose<perm=[0, 2, 1]>({})", sum));
  result.give(
      "y0", site.type(0),
      fmt::format("Reshape(channels_first, {})", result.ints("y_shape", {0, channels, (*grid)[0], (*grid)[1]})));
  result.summary = fmt::format("GatherND of the 4 nearest pixels of {} points", places);
  return result;
}

}  // namespace graft::passes

// DeformConv: samples of the image at the places that the offsets name, and a convolution of 1 x 1 over all samples.
//
//   y = DeformConv(x, w, offset, mask)   becomes
//     grid    = (the place in the image of each place of each window + offset) in the coordinates of GridSample
//     samples = GridSample(x, grid)             one image above the other for each place of the window
//     y       = Conv(samples * mask, w as 1 x 1)
//
// Both DeformConv and GridSample interpolate between four pixels and use 0 for pixels beyond the image. Each offset
// group samples its own channels, as a batch of its own.
#include <fmt/format.h>

#include "passes/lowering/windows.hpp"

namespace graft::passes {
namespace {

/// Returns the GridSample coordinates x, y (from -1 to 1 over the image) of each kernel position of each window,
/// ordered by [kernel row, kernel column, output row, output column].
std::vector<double> window_points(const std::vector<Window>& windows, std::int64_t height, std::int64_t width) {
  const Window& down = windows[0];
  const Window& across = windows[1];
  // x comes first, as in GridSample: pixel p has the coordinate 2 (p + 1/2) / size - 1.
  std::vector<double> base;
  for_each_index(
      {down.kernel, across.kernel, down.count(height), across.count(width)}, [&](const std::vector<std::int64_t>& at) {
        const auto x = static_cast<double>(at[3] * across.stride - across.pad_begin + at[1] * across.dilation);
        const auto y = static_cast<double>(at[2] * down.stride - down.pad_begin + at[0] * down.dilation);
        base.push_back((2 * x + 1) / static_cast<double>(width) - 1);
        base.push_back((2 * y + 1) / static_cast<double>(height) - 1);
      });
  return base;
}

}  // namespace

std::optional<Replacement> lower_deform_conv(Site& site) {
  const auto image = site.sizes(0, 1);
  const auto weight = site.sizes(1);
  if (!image || image->size() != 3 || !weight || weight->size() != 4) {
    return site.no_size("its input is not a batch of images, or a size other than the batch is dynamic");
  }
  if (!site.is_real(0)) return site.no_type(0);
  const std::int64_t channels = (*image)[0];
  const std::int64_t height = (*image)[1];
  const std::int64_t width = (*image)[2];
  const std::int64_t groups = site.node().int_or("group", 1);
  const std::int64_t offset_groups = site.node().int_or("offset_group", 1);
  const std::vector<std::int64_t> kernel{(*weight)[2], (*weight)[3]};
  if (groups < 1 || offset_groups < 1 || channels % offset_groups != 0 || channels != (*weight)[1] * groups) {
    return site.no("its number of channels does not fit group, offset_group and the weights");
  }
  const auto windows = windows_of(site, kernel);
  if (!windows) return std::nullopt;
  const std::int64_t rows = (*windows)[0].count(height);
  const std::int64_t columns = (*windows)[1].count(width);
  const std::int64_t places = kernel[0] * kernel[1];

  Replacement result;
  const std::string grid =
      result.constant("base", f32_tensor({1, places, rows, columns, 2}, window_points(*windows, height, width)));
  const std::string units = result.constant(
      "units", f32_tensor({1, 1, 1, 1, 2}, {2.0 / static_cast<double>(width), 2.0 / static_cast<double>(height)}));
  const std::string x_first = result.ints("x_first", {1, 0});
  const std::string offset = result.in_f32("x2", site.type(2));
  result.line(
      fmt::format("offsets = Reshape({}, {})", offset, result.ints("offsets_shape", {-1, places, 2, rows, columns})));
  result.line("pairs = Transpose<perm=[0, 1, 3, 4, 2]>(offsets)");
  result.line(fmt::format("pairs_xy = Gather<axis=4>(pairs, {})", x_first));
  result.line(fmt::format("moves = Mul(pairs_xy, {})", units));
  result.line(fmt::format("points = Add(moves, {})", grid));
  result.line(fmt::format("grid = Reshape(points, {})", result.ints("grid_shape", {-1, places * rows, columns, 2})));
  const std::int64_t sampled = channels / offset_groups;
  std::string x = result.in_f32("x0", site.type(0));
  if (offset_groups != 1) {
    result.line(fmt::format("apart = Reshape({}, {})", x, result.ints("apart_shape", {-1, sampled, height, width})));
    x = "apart";
  }
  result.line(
      fmt::format("samples = GridSample<mode=\"bilinear\", padding_mode=\"zeros\", align_corners=0>({}, grid)", x));
  if (site.has_input(4)) {
    const std::string mask = result.in_f32("x4", site.type(4));
    result.line(
        fmt::format("mask = Reshape({}, {})", mask, result.ints("mask_shape", {-1, 1, places * rows, columns})));
    result.line("kept = Mul(samples, mask)");
  }
  const char* samples = site.has_input(4) ? "kept" : "samples";
  // [channel, place] becomes one axis, as in the weights.
  result.line(fmt::format("columns = Reshape({}, {})", samples,
                          result.ints("columns_shape", {-1, channels * places, rows, columns})));
  const std::string w = result.in_f32("x1", site.type(1));
  result.line(fmt::format("weights = Reshape({}, {})", w, result.ints("weights_shape", {0, -1, 1, 1})));
  std::string convolution = fmt::format("Conv<group={}, kernel_shape=[1, 1]>(columns, weights", groups);
  if (site.has_input(3)) convolution += ", " + result.in_f32("x3", site.type(3));
  result.give("y0", site.type(0), convolution + ")");
  result.summary = fmt::format("GridSample of {} points and Conv of 1 x 1", places);
  return result;
}

}  // namespace graft::passes

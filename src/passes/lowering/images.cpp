// AffineGrid and CenterCropPad of fixed size.
//
//   AffineGrid(map, size)     becomes   Reshape(MatMul(points, Transpose(map)), shape of the grid)
//   CenterCropPad(x, shape)   becomes   Pad(Slice(x))
//
// `points` holds all points of the image, each followed by a 1. CenterCropPad crops or pads both sides of an axis; of
// an odd difference the larger half is at the end.
#include <fmt/format.h>

#include <numeric>

#include "passes/lowering/windows.hpp"

namespace graft::passes {

std::optional<Replacement> lower_affine_grid(Site& site) {
  const auto size = site.ints(1);
  if (!size || (size->size() != 4 && size->size() != 5))
    return site.no("its input size is not a constant of 4 or 5 elements");
  if (!site.is_real(0)) return site.no_type(0);
  const std::vector<std::int64_t> image(size->begin() + 2, size->end());
  const auto axes = static_cast<std::int64_t>(image.size());
  const bool aligns = site.node().int_or("align_corners", 0) != 0;
  for (const std::int64_t length : image) {
    if (length < (aligns ? 2 : 1))
      return site.no(
          fmt::format("an axis of its image has {} pixels; it must have at least {}", length, aligns ? 2 : 1));
  }
  if (product(image) > most_constants / (axes + 1))
    return site.no(fmt::format("the coordinates of its image would have more than {} elements", most_constants));
  std::vector<double> points;
  for_each_index(image, [&](const std::vector<std::int64_t>& at) {
    for (std::size_t i = image.size(); i-- > 0;) {  // x first
      const auto place = static_cast<double>(at[i]);
      const auto length = static_cast<double>(image[i]);
      points.push_back(aligns ? 2 * place / (length - 1) - 1 : (2 * place + 1) / length - 1);
    }
    points.push_back(1);
  });
  Replacement result;
  const std::string table = result.constant("points", f32_tensor({1, product(image), axes + 1}, points));
  std::vector<std::int64_t> shape{-1};
  shape.insert(shape.end(), image.begin(), image.end());
  shape.push_back(axes);
  const std::string whole = result.ints("grid_shape", shape);
  result.line(fmt::format("turned = Transpose<perm=[0, 2, 1]>({})", result.in_f32("x0", site.type(0))));
  result.line(fmt::format("moved = MatMul({}, turned)", table));
  result.give("y0", site.type(0), fmt::format("Reshape(moved, {})", whole));
  result.summary = fmt::format("MatMul of the {} pixel coordinates with theta", product(image));
  return result;
}

std::optional<Replacement> lower_center_crop_pad(Site& site) {
  const auto wanted = site.ints(1);
  const Shape* shape = site.shape(0);
  if (!wanted) return site.no("its requested sizes are not a constant");
  if (shape == nullptr) return site.no("the rank of its input is unknown");
  const auto rank = static_cast<std::int64_t>(shape->size());
  std::vector<std::int64_t> axes = site.node().ints("axes").value_or(std::vector<std::int64_t>());
  if (axes.empty()) {
    axes.resize(static_cast<std::size_t>(rank));
    std::iota(axes.begin(), axes.end(), 0);
  }
  if (axes.size() != wanted->size()) return site.no("the number of requested sizes differs from the number of axes");
  std::vector<std::int64_t> from;
  std::vector<std::int64_t> to;
  std::vector<std::int64_t> along;
  std::vector<std::int64_t> pads(static_cast<std::size_t>(2 * rank), 0);
  bool is_padded = false;
  for (std::size_t i = 0; i < axes.size(); ++i) {
    const std::int64_t axis = axes[i] < 0 ? axes[i] + rank : axes[i];
    const auto length = site.size(0, axis);
    if (!length || axis < 0 || axis >= rank) return site.no_size("a size that it changes is dynamic");
    const std::int64_t missing = (*wanted)[i] - *length;
    if (missing < 0) {
      from.push_back(-missing / 2);
      to.push_back(-missing / 2 + (*wanted)[i]);
      along.push_back(axis);
    } else if (missing > 0) {
      pads[static_cast<std::size_t>(axis)] = missing / 2;
      pads[static_cast<std::size_t>(axis + rank)] = missing - missing / 2;
      is_padded = true;
    }
  }
  Replacement result;
  if (!from.empty()) {
    result.line(fmt::format("{} = Slice(x0, {}, {}, {})", is_padded ? "cropped" : "y0", result.ints("from", from),
                            result.ints("to", to), result.ints("along", along)));
  }
  if (is_padded)
    result.line(fmt::format("y0 = Pad({}, {})", from.empty() ? "x0" : "cropped", result.ints("pads", pads)));
  if (from.empty() && !is_padded) result.line("y0 = Identity(x0)");
  result.summary = "Slice and Pad";
  return result;
}

}  // namespace graft::passes

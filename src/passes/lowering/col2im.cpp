// Col2Im, which adds up overlapping blocks of an image.
//
//   Col2Im(x)   becomes   Reshape(Transpose(Reshape(x)))      if the blocks tile the image: each number has one place
//   Col2Im(x)   becomes   ConvTranspose(Reshape(x), kernel)   otherwise
//
// ConvTranspose adds up blocks in the same way, with a kernel that puts the numbers of a block in their places: 1 for
// the place of a number, 0 for all others. There is one group for each channel.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "passes/lowering/windows.hpp"

namespace graft::passes {

std::optional<Replacement> lower_col2im(Site& site) {
  const auto image = site.ints(1);
  const auto block = site.ints(2);
  if (!image || !block) return site.no("the sizes of its image and blocks are not constants");
  const std::size_t axes = image->size();
  if (axes == 0 || axes > 3 || block->size() != axes)
    return site.no(fmt::format("its image has {} axes; allowed are 1 to 3", axes));
  const auto columns = site.size(0, 1);
  if (!site.is_real(0) || !columns) return site.no("its element type or its number of channels is not known");
  const auto strides = site.ints_or("strides", axes, 1);
  const auto dilations = site.ints_or("dilations", axes, 1);
  const auto pads = site.ints_or("pads", 2 * axes, 0);

  const std::int64_t places = product(*block);
  if (places < 1 || *columns % places != 0)
    return site.no("its number of channels is not a multiple of the block size");
  const std::int64_t channels = *columns / places;
  std::vector<std::int64_t> blocks;
  bool tiles = true;
  for (std::size_t i = 0; i < axes; ++i) {
    const Window window{(*block)[i], strides[i], dilations[i], pads[i], pads[i + axes]};
    if (window.kernel < 1 || window.stride < 1 || window.dilation < 1 || window.pad_begin < 0 || window.pad_end < 0 ||
        (*image)[i] + window.pad_begin + window.pad_end < window.extent()) {
      return site.no("its blocks do not fit its image");
    }
    blocks.push_back(window.count((*image)[i]));
    tiles = tiles && window.dilation == 1 && window.stride == window.kernel && window.pad_begin == 0 &&
            window.pad_end == 0 && blocks.back() * window.kernel == (*image)[i];
  }

  Replacement result;
  if (tiles) {
    std::vector<std::int64_t> apart{0, channels};
    apart.insert(apart.end(), block->begin(), block->end());
    apart.insert(apart.end(), blocks.begin(), blocks.end());
    std::vector<std::int64_t> order{0, 1};
    for (std::size_t i = 0; i < axes; ++i) {
      order.push_back(static_cast<std::int64_t>(2 + axes + i));
      order.push_back(static_cast<std::int64_t>(2 + i));
    }
    std::vector<std::int64_t> whole{0, channels};
    whole.insert(whole.end(), image->begin(), image->end());
    result.line(fmt::format("apart = Reshape(x0, {})", result.ints("apart_shape", apart)));
    result.line(fmt::format("woven = Transpose<perm={}>(apart)", order));
    result.line(fmt::format("y0 = Reshape(woven, {})", result.ints("image_shape", whole)));
    result.summary = "Reshape, Transpose and Reshape: the blocks do not overlap";
    return result;
  }

  // ConvTranspose returns (blocks - 1) * stride + extent - pads; the image may be larger.
  std::vector<std::int64_t> crops = pads;
  std::vector<std::int64_t> missing(2 * (axes + 2), 0);
  for (std::size_t i = 0; i < axes; ++i) {
    const std::int64_t extent = dilations[i] * ((*block)[i] - 1) + 1;
    const std::int64_t rest = (*image)[i] + pads[i] + pads[i + axes] - ((blocks[i] - 1) * strides[i] + extent);
    crops[i + axes] = std::max<std::int64_t>(0, pads[i + axes] - rest);
    missing[axes + 2 + 2 + i] = std::max<std::int64_t>(0, rest - pads[i + axes]);
  }
  const bool pads_after = std::any_of(missing.begin(), missing.end(), [](std::int64_t size) { return size != 0; });
  // TensorRT-RTX 1.7.1 has no ConvTranspose with both strides and dilations, so the kernel then contains the gaps.
  const auto is_beyond_one = [](std::int64_t n) { return n > 1; };
  const bool has_gaps = std::any_of(strides.begin(), strides.end(), is_beyond_one) &&
                        std::any_of(dilations.begin(), dilations.end(), is_beyond_one);
  std::vector<std::int64_t> window = *block;
  for (std::size_t i = 0; has_gaps && i < axes; ++i) window[i] = dilations[i] * ((*block)[i] - 1) + 1;
  const std::int64_t area = product(window);
  if (*columns > most_constants / area) return site.no("its kernel would be too large");
  std::vector<double> kernel(static_cast<std::size_t>(*columns * area), 0);
  std::int64_t column = 0;
  for (std::int64_t channel = 0; channel < channels; ++channel) {
    for_each_index(*block, [&](const std::vector<std::int64_t>& place) {
      std::int64_t position = 0;
      for (std::size_t i = 0; i < axes; ++i) position = position * window[i] + place[i] * (has_gaps ? dilations[i] : 1);
      kernel[static_cast<std::size_t>(column++ * area + position)] = 1;
    });
  }
  std::vector<std::int64_t> kernel_shape{*columns, 1};
  kernel_shape.insert(kernel_shape.end(), window.begin(), window.end());
  std::vector<std::int64_t> grid{0, *columns};
  grid.insert(grid.end(), blocks.begin(), blocks.end());
  const std::string weights =
      result.constant("kernel", onnx::TensorData::from_numbers(site.type(0), std::move(kernel_shape), kernel));
  result.line(fmt::format("grid = Reshape(x0, {})", result.ints("grid_shape", grid)));
  result.line(fmt::format("{} = ConvTranspose<group={}, kernel_shape={}, strides={}, dilations={}, pads={}>(grid, {})",
                          pads_after ? "sum" : "y0", channels, window, strides,
                          has_gaps ? std::vector<std::int64_t>(axes, 1) : dilations, crops, weights));
  if (pads_after) result.line(fmt::format("y0 = Pad(sum, {})", result.ints("missing", missing)));
  result.summary = "ConvTranspose with a kernel that copies each element to its position";
  return result;
}

}  // namespace graft::passes

// Col2Im, which adds up overlapping blocks of an image.
//
//   Col2Im(x)   becomes   Reshape(Transpose(Reshape(x)))      if the blocks tile the image: each element has one place
//   Col2Im(x)   becomes   ConvTranspose(Reshape(x), kernel)   otherwise
//
// ConvTranspose adds up blocks in the same way, with a kernel that puts the elements of a block in their places: 1 for
// the place of an element, 0 for all other places. There is one group for each channel.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <utility>

#include "passes/lowering/refused_forms.hpp"
#include "passes/lowering/windows.hpp"

namespace graft::passes {
namespace {

/// The sizes of a Col2Im: of the image, of a block, and of the grid of blocks whose sum is the image.
struct Blocks {
  std::vector<std::int64_t> image;
  std::vector<std::int64_t> block;
  std::vector<std::int64_t> counts;  ///< The number of blocks along each axis.
  std::vector<Window> windows;
  std::int64_t channels = 0;

  [[nodiscard]] std::int64_t columns() const { return channels * product(block); }
  /// Returns whether the blocks do not overlap and cover the image exactly, so that a Transpose and a Reshape suffice.
  [[nodiscard]] bool tile() const {
    for (std::size_t i = 0; i < windows.size(); ++i) {
      const Window& w = windows[i];
      if (w.dilation != 1 || w.stride != w.kernel || w.pad_begin != 0 || w.pad_end != 0 ||
          counts[i] * w.kernel != image[i]) {
        return false;
      }
    }
    return true;
  }
};

/// Reads the sizes of a Col2Im. Returns nothing, and stores the reason with site.no(), if sizes are unknown or
/// inconsistent.
std::optional<Blocks> read_blocks(Site& site) {
  const auto image = site.ints(1);
  const auto block = site.ints(2);
  if (!image || !block) return site.no("the sizes of its image and blocks are not constants");
  const std::size_t axes = image->size();
  if (axes == 0 || axes > 3 || block->size() != axes)
    return site.no(
        fmt::format("its image has {} axes and its block {}; both must have the same number of axes, from 1 to 3", axes,
                    block->size()));
  const auto columns = site.size(0, 1);
  if (!site.is_real(0) || !columns)
    return site.no("its input must have a known number of channels and the type f32, f16 or bf16");
  const auto strides = site.ints_or("strides", axes, 1);
  const auto dilations = site.ints_or("dilations", axes, 1);
  const auto pads = site.ints_or("pads", 2 * axes, 0);
  const std::int64_t places = product(*block);
  if (places < 1 || *columns % places != 0)
    return site.no("its number of channels is not a multiple of the block size");
  Blocks blocks{*image, *block, {}, {}, *columns / places};
  for (std::size_t i = 0; i < axes; ++i) {
    const Window window{(*block)[i], strides[i], dilations[i], pads[i], pads[i + axes]};
    if (window.kernel < 1 || window.stride < 1 || window.dilation < 1 || window.pad_begin < 0 || window.pad_end < 0 ||
        (*image)[i] + window.pad_begin + window.pad_end < window.extent()) {
      return site.no("its blocks, with the strides, dilations and pads of the node, do not fit into its image");
    }
    blocks.counts.push_back(window.count((*image)[i]));
    blocks.windows.push_back(window);
  }
  return blocks;
}

Replacement place_tiles(const Blocks& blocks) {
  const std::size_t axes = blocks.windows.size();
  std::vector<std::int64_t> apart{0, blocks.channels};
  apart.insert(apart.end(), blocks.block.begin(), blocks.block.end());
  apart.insert(apart.end(), blocks.counts.begin(), blocks.counts.end());
  std::vector<std::int64_t> order{0, 1};
  for (std::size_t i = 0; i < axes; ++i) {
    order.push_back(static_cast<std::int64_t>(2 + axes + i));
    order.push_back(static_cast<std::int64_t>(2 + i));
  }
  std::vector<std::int64_t> whole{0, blocks.channels};
  whole.insert(whole.end(), blocks.image.begin(), blocks.image.end());
  Replacement result;
  result.line(fmt::format("apart = Reshape(x0, {})", result.ints("apart_shape", apart)));
  result.line(fmt::format("woven = Transpose<perm={}>(apart)", order));
  result.line(fmt::format("y0 = Reshape(woven, {})", result.ints("image_shape", whole)));
  result.summary = "Reshape, Transpose and Reshape: the blocks do not overlap";
  return result;
}

/// The attributes of the ConvTranspose that adds up the blocks. If strides and dilations are both above 1, which
/// TensorRT-RTX 1.7.1 does not support, the dilation is written as zeros in the kernel.
struct Convolution {
  explicit Convolution(const Blocks& blocks) : missing(2 * (blocks.windows.size() + 2), 0) {
    const std::size_t axes = blocks.windows.size();
    crops.resize(2 * axes);
    for (std::size_t i = 0; i < axes; ++i) {
      const Window& w = blocks.windows[i];
      // ConvTranspose returns (blocks - 1) * stride + extent - pads; the image may be larger.
      const std::int64_t rest =
          blocks.image[i] + w.pad_begin + w.pad_end - ((blocks.counts[i] - 1) * w.stride + w.extent());
      crops[i] = w.pad_begin;
      crops[i + axes] = std::max<std::int64_t>(0, w.pad_end - rest);
      missing[axes + 2 + 2 + i] = std::max<std::int64_t>(0, rest - w.pad_end);
      strides.push_back(w.stride);
      dilations.push_back(w.dilation);
    }
    kernel = blocks.block;
    steps.assign(axes, 1);
    if (!is_strided_and_dilated(strides, dilations)) return;
    for (std::size_t i = 0; i < axes; ++i) kernel[i] = blocks.windows[i].extent();
    steps = std::exchange(dilations, std::vector<std::int64_t>(axes, 1));
  }

  std::vector<std::int64_t> strides;
  std::vector<std::int64_t> dilations;
  std::vector<std::int64_t> crops;    ///< The attribute pads of the ConvTranspose.
  std::vector<std::int64_t> missing;  ///< The pads of the Pad after the ConvTranspose.
  std::vector<std::int64_t> kernel;   ///< The size of the kernel.
  std::vector<std::int64_t> steps;    ///< The distance, in the kernel, between neighboring elements of a block.
};

/// Returns the kernel of the ConvTranspose, row-major [columns, 1, kernel sizes]: for each column of the input, a 1 at
/// the position of its element in the block and 0 elsewhere.
std::vector<double> kernel_values(const Blocks& blocks, const Convolution& convolution) {
  const std::int64_t area = product(convolution.kernel);
  std::vector<double> values(static_cast<std::size_t>(blocks.columns() * area), 0);
  std::int64_t column = 0;
  for (std::int64_t channel = 0; channel < blocks.channels; ++channel) {
    for_each_index(blocks.block, [&](const std::vector<std::int64_t>& place) {
      std::int64_t position = 0;
      for (std::size_t i = 0; i < place.size(); ++i) {
        position = position * convolution.kernel[i] + place[i] * convolution.steps[i];
      }
      values[static_cast<std::size_t>(column++ * area + position)] = 1;
    });
  }
  return values;
}

}  // namespace

std::optional<Replacement> lower_col2im(Site& site) {
  const auto blocks = read_blocks(site);
  if (!blocks) return std::nullopt;
  if (blocks->tile()) return place_tiles(*blocks);
  const Convolution convolution(*blocks);
  if (blocks->columns() > most_constants / product(convolution.kernel)) {
    return site.no(fmt::format("the kernel of its ConvTranspose would have more than {} elements", most_constants));
  }
  std::vector<std::int64_t> kernel_shape{blocks->columns(), 1};
  kernel_shape.insert(kernel_shape.end(), convolution.kernel.begin(), convolution.kernel.end());
  std::vector<std::int64_t> grid{0, blocks->columns()};
  grid.insert(grid.end(), blocks->counts.begin(), blocks->counts.end());
  Replacement result;
  const std::string weights = result.constant(
      "kernel",
      onnx::TensorData::from_numbers(site.type(0), std::move(kernel_shape), kernel_values(*blocks, convolution)));
  const bool pads_after =
      std::any_of(convolution.missing.begin(), convolution.missing.end(), [](std::int64_t size) { return size != 0; });
  result.line(fmt::format("grid = Reshape(x0, {})", result.ints("grid_shape", grid)));
  result.line(fmt::format("{} = ConvTranspose<group={}, kernel_shape={}, strides={}, dilations={}, pads={}>(grid, {})",
                          pads_after ? "sum" : "y0", blocks->channels, convolution.kernel, convolution.strides,
                          convolution.dilations, convolution.crops, weights));
  if (pads_after) result.line(fmt::format("y0 = Pad(sum, {})", result.ints("missing", convolution.missing)));
  result.summary = "ConvTranspose with a kernel that copies each element to its position";
  return result;
}

}  // namespace graft::passes

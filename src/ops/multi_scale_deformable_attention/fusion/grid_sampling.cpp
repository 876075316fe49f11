// Reads GridSample nodes, and bilinear sampling that is expressed with gathers.
//
// Networks for runtimes without GridSample express it in different ways: they gather the pixels of the four corners at
// row * width + column, from an image padded with zeros or with masks for positions outside, and sum the pixels with
// weights. mmcv's bilinear_grid_sample is the best known form. The forms are not listed here. Instead, the samples are
// read as a formula of one point of the grid, see SamplingProgram, and the formula is evaluated at all columns and rows
// of the image and beyond, between pixels and on them. There it must have the weight of bilinear sampling for each
// pixel, and no other pixel.
#include "ops/multi_scale_deformable_attention/fusion/grid_sampling.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "ops/multi_scale_deformable_attention/fusion/ancestors.hpp"
#include "ops/multi_scale_deformable_attention/fusion/sampling_program.hpp"

namespace graft::passes::deformable_attention {
namespace {

constexpr double close_enough = 1e-6;

GridSampling read_grid_sample(const onnx::Node& node) {
  GridSampling found;
  found.image = node.input(0);
  found.grid = node.input(1);
  found.height = fixed_size(found.image, 2);
  found.width = fixed_size(found.image, 3);
  const std::string mode = node.string_or("mode", "linear");
  const std::string padding = node.string_or("padding_mode", "zeros");
  const auto layout = AxisLayout::of(*node.output(), {item, channel, query, point});
  if (mode != "linear" && mode != "bilinear") {
    found.obstacle = fmt::format("the attribute mode of {} is {}", describe(node), mode);
  } else if (padding != "zeros") {
    found.obstacle = fmt::format("the attribute padding_mode of {} is {}", describe(node), padding);
  } else if (node.int_or("align_corners", 0) != 0) {
    found.obstacle = fmt::format("the attribute align_corners of {} is 1", describe(node));
  } else if (rank_of(found.image) != 4 || rank_of(found.grid) != 4 || !layout) {
    found.obstacle = fmt::format("{} does not sample images", describe(node));
  } else {
    found.layout = *layout;
  }
  return found;
}

bool gathers_pixels(const onnx::Node& node) {
  if (node.is("GatherElements") || node.is("GatherND")) return true;
  return node.is("Gather") && node.input(1) != nullptr && !node.input(1)->constant();
}

bool rounds(const onnx::Node& node) { return node.is("Floor") || node.is("Ceil") || node.is("Round"); }

bool truncates(const onnx::Node& node) {
  const onnx::Value* from = node.input(0);
  return node.is("Cast") && onnx::is_integer(static_cast<onnx::ElementType>(node.int_or("to", 0))) && from != nullptr &&
         from->type && onnx::is_floating_point(*from->type);
}

/// Returns the node for which `is_it` is true and that precedes `from` by the fewest nodes, or `from` itself; null if
/// there is no such node among the 100 nearest ones.
const onnx::Node* nearest_node(const onnx::Node* from, bool (*is_it)(const onnx::Node&)) {
  constexpr std::size_t most = 100;
  std::vector<const onnx::Node*> waiting{from};
  std::unordered_set<const onnx::Node*> seen{from, nullptr};
  for (std::size_t i = 0; i < waiting.size() && i < most && from != nullptr; ++i) {
    if (is_it(*waiting[i])) return waiting[i];
    for (const onnx::Value* input : waiting[i]->inputs) {
      const bool is_computed = input != nullptr && !input->constant();
      if (is_computed && seen.insert(input->producer).second) waiting.push_back(input->producer);
    }
  }
  return nullptr;
}

/// Returns whether a tensor is a constant, or is computed from constants and shapes along paths of fewer than `nodes`
/// nodes.
bool is_known_beforehand(const onnx::Value* value, int nodes = 6) {
  if (value == nullptr || nodes == 0) return false;
  if (value->constant()) return true;
  const onnx::Node* node = value->producer;
  if (node == nullptr || node->is("Shape")) return node != nullptr;
  return std::all_of(node->inputs.begin(), node->inputs.end(),
                     [&](const onnx::Value* input) { return is_known_beforehand(input, nodes - 1); });
}

/// Returns the tensors [N,Q,P,2] from which a position is computed by moving elements and by arithmetic with constants,
/// the nearest first.
std::vector<onnx::Value*> grids_of(onnx::Value* position) {
  std::vector<onnx::Value*> grids;
  constexpr std::size_t most = 32;
  onnx::Value* value = position;
  for (std::size_t i = 0; i < most && value != nullptr; ++i) {
    const bool is_grid = rank_of(value) == 4 && fixed_size(value, 3) == 2;
    if (is_grid) grids.push_back(value);
    const onnx::Node* node = value->producer;
    if (node == nullptr) break;
    const bool is_arithmetic = node->is("Add") || node->is("Sub") || node->is("Mul") || node->is("Div");
    if (moves_elements(*node) || (is_arithmetic && is_known_beforehand(node->input(1)))) {
      value = node->input(0);
    } else if (is_arithmetic && is_known_beforehand(node->input(0))) {
      value = node->input(1);
    } else {
      break;
    }
  }
  return grids;
}

/// Returns positions along one axis at which a formula is evaluated, in pixels, from before the first pixel to after
/// the last one. If `all` is true, they contain every pixel and positions between pixels, otherwise only a few
/// positions.
std::vector<double> places_along(std::int64_t size, bool all) {
  const auto length = static_cast<double>(size);
  std::vector<double> places{-1e4, -1.75, -1, -0.25, 0.375, length / 2, length - 1.25, length - 0.5, length + 0.5, 1e4};
  constexpr std::int64_t beyond = 4;
  for (std::int64_t pixel = -beyond; all && pixel < size + beyond; ++pixel) {
    for (const double part : {0.0, 0.1875, 0.5, 0.875}) places.push_back(static_cast<double>(pixel) + part);
  }
  return places;
}

using Weights = std::map<std::pair<std::int64_t, std::int64_t>, double>;

/// Returns the weight of each pixel (column, row) that a bilinear sample at the position (`across`, `down`) reads.
/// Positions are in pixels; pixels outside the image are omitted.
Weights bilinear_weights(double across, double down, std::int64_t width, std::int64_t height) {
  Weights weights;
  for (const double column : {std::floor(across), std::floor(across) + 1}) {
    for (const double row : {std::floor(down), std::floor(down) + 1}) {
      if (column < 0 || row < 0 || column >= static_cast<double>(width) || row >= static_cast<double>(height)) continue;
      weights[{static_cast<std::int64_t>(column), static_cast<std::int64_t>(row)}] =
          (1 - std::abs(across - column)) * (1 - std::abs(down - row));
    }
  }
  return weights;
}

/// An image of a known size, and the positions at which a program gathers its pixels.
struct SampledImage {
  std::int64_t width = 0;
  std::int64_t height = 0;
  std::int64_t row_length = 0;
  std::array<PixelPosition, 2> positions;

  [[nodiscard]] bool is_sampled_at(const SamplingProgram& program, double across, double down,
                                   std::int64_t of_item) const {
    const auto found = program.weights_at(
        {(across - positions[0].offset) / positions[0].scale, (down - positions[1].offset) / positions[1].scale},
        of_item);
    if (!found) return false;
    Weights left = bilinear_weights(across, down, width, height);
    for (const PixelWeight& each : *found) {
      const std::int64_t column = each.pixel % row_length - program.source().left;
      const std::int64_t row = each.pixel / row_length - program.source().top;
      if (column >= 0 && column < width && row >= 0 && row < height) left[{column, row}] -= each.weight;
    }
    return std::all_of(left.begin(), left.end(), [](const auto& each) { return std::abs(each.second) < close_enough; });
  }

  [[nodiscard]] bool is_sampled_by(const SamplingProgram& program) const {
    std::int64_t of_item = 0;
    for (const bool all_across : {true, false}) {
      for (const double across : places_along(width, all_across)) {
        for (const double down : places_along(height, !all_across)) {
          if (!is_sampled_at(program, across, down, ++of_item % 3)) return false;
        }
      }
    }
    return true;
  }
};

/// Returns the image from which the program gathers. If only the number of its pixels is known, its aspect ratio is the
/// ratio of the scales of the positions; returns nothing if no image has that number of pixels and that ratio.
std::optional<SampledImage> image_of(const SamplingProgram& program, const std::array<PixelPosition, 2>& positions) {
  const PixelSource& source = program.source();
  SampledImage image{source.width - source.left - source.right, source.height - source.top - source.bottom,
                     source.width, positions};
  if (source.width == 0) {
    const double ratio = positions[0].scale / positions[1].scale;
    image.width = ratio > 0 ? std::llround(std::sqrt(static_cast<double>(source.count) * ratio)) : 0;
    if (image.width <= 0 || source.count % image.width != 0) return std::nullopt;
    image.height = source.count / image.width;
    image.row_length = image.width;
  }
  return image;
}

/// Returns how `samples` are sampled at the points of `grid`. If they are not bilinear samples, sets `obstacle` of the
/// result to the reason.
GridSampling sampled_at(onnx::Value& samples, onnx::Value& grid) {
  GridSampling found;
  const auto program = SamplingProgram::of(samples, grid, found.obstacle);
  if (!program) {
    found.obstacle = fmt::format(
        "'{}' is not sampled from an image at '{}': {}", samples.name, grid.name,
        found.obstacle.empty() ? "its computation does not have the form of bilinear sampling" : found.obstacle);
    return found;
  }
  const auto positions = program->positions();
  const auto image = positions ? image_of(*program, *positions) : std::nullopt;
  if (!image) {
    found.obstacle = fmt::format("'{}' does not read its pixels at the positions in '{}'", samples.name, grid.name);
    return found;
  }
  // At a coordinate x from -1 to 1 the position is (x + 1) * size / 2 - 0.5, and x is scale * g + offset.
  const auto along = [&](std::size_t i, std::int64_t size) {
    const auto length = static_cast<double>(size);
    return std::pair{2 * (*positions)[i].scale / length, (2 * (*positions)[i].offset + 1 - length) / length};
  };
  const auto across = along(0, image->width);
  const auto down = along(1, image->height);
  const bool is_one_grid =
      std::abs(across.first - down.first) < close_enough && std::abs(across.second - down.second) < close_enough;
  if (!is_one_grid) {
    found.obstacle =
        fmt::format("'{}' is not sampled at (x + 1) * size / 2 - 0.5 of '{}', the positions for align_corners = 0",
                    samples.name, grid.name);
    return found;
  }
  if (!image->is_sampled_by(*program)) {
    found.obstacle =
        fmt::format("the pixels of '{}' do not have the weights of bilinear sampling with zeros outside", samples.name);
    return found;
  }
  found.image = program->source().image;
  found.height = image->height;
  found.width = image->width;
  found.grid = &grid;
  found.scale = across.first;
  found.offset = across.second;
  found.layout = program->layout();
  return found;
}

}  // namespace

std::optional<GridSampling> read_grid_sampling(const onnx::Node& node) {
  if (node.is("GridSample")) return read_grid_sample(node);
  const bool ends_sampling =
      node.is("Add") || node.is("Sum") || node.is("Where") || node.is("Mul") || node.is("Sub") || gathers_pixels(node);
  const onnx::Node* gather = ends_sampling ? nearest_node(&node, gathers_pixels) : nullptr;
  if (gather == nullptr) return std::nullopt;
  const onnx::Node* first = nearest_node(gather->input(1)->producer, rounds);
  if (first == nullptr) first = nearest_node(gather->input(1)->producer, truncates);
  if (first == nullptr) return std::nullopt;
  // The earliest grid is tried first: arithmetic with one number per coordinate may lie between it and the later ones.
  const std::vector<onnx::Value*> grids = grids_of(first->input(0));
  std::optional<GridSampling> found;
  for (auto grid = grids.rbegin(); grid != grids.rend() && (!found || !found->obstacle.empty()); ++grid) {
    found = sampled_at(*node.outputs[0], **grid);
  }
  return found;
}

}  // namespace graft::passes::deformable_attention

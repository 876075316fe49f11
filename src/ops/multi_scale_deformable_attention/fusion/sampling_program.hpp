// The formula by which a network computes a sample from one point of a grid and the pixels of an image.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "onnx/model.hpp"
#include "ops/multi_scale_deformable_attention/fusion/axis_layout.hpp"

namespace graft::passes::deformable_attention {

/// The source of gathered pixels: an image [N,C,H,W], possibly padded with zeros, or the pixels of an image as [N,C,S].
struct PixelSource {
  onnx::Value* image = nullptr;
  std::int64_t height = 0;  ///< The height including the zeros; 0 for [N,C,S].
  std::int64_t width = 0;
  std::int64_t count = 0;  ///< The number of pixels, including the zeros.
  std::int64_t top = 0;    ///< The number of rows of zeros above the image.
  std::int64_t left = 0;
  std::int64_t bottom = 0;
  std::int64_t right = 0;
  friend bool operator==(const PixelSource&, const PixelSource&) = default;
};

/// The weight of a pixel in a sample.
struct PixelWeight {
  std::int64_t pixel = 0;
  double weight = 0;
};

/// A position in pixels, scale * g + offset, where g is a coordinate of the grid.
struct PixelPosition {
  double scale = 0;
  double offset = 0;
};

/// A tensor of samples, each of one point of a grid [N,Q,P,2], that is computed element by element from the grid, from
/// constants and from gathered pixels. The samples are weighted sums of pixels. One formula determines the pixels and
/// the weights for every item, query, point and channel.
class SamplingProgram {
 public:
  /// Compiles the samples. Returns nothing and sets `why_not` if they cannot be compiled into such a program.
  [[nodiscard]] static std::optional<SamplingProgram> of(onnx::Value& samples, onnx::Value& grid, std::string& why_not);

  /// Returns the layout of the samples in terms of item, channel, query and point.
  [[nodiscard]] const AxisLayout& layout() const { return layout_; }
  [[nodiscard]] const PixelSource& source() const { return source_; }
  /// Returns the column and the row of a point before they are rounded to integers, or nothing unless each of them
  /// depends on one coordinate only.
  [[nodiscard]] std::optional<std::array<PixelPosition, 2>> positions() const;
  /// Returns the pixels that a sample reads at the point `place` of the grid in item `of_item`, with their weights;
  /// nothing if a gather reads outside its input.
  [[nodiscard]] std::optional<std::vector<PixelWeight>> weights_at(std::array<double, 2> place,
                                                                   std::int64_t of_item) const;

 private:
  friend class SamplingCompiler;
  enum class Operation : std::uint8_t {
    constant,
    place,
    item_index,
    first_coordinate,
    second_coordinate,
    copy,
    add,
    subtract,
    multiply,
    divide,
    minimum,
    maximum,
    negate,
    absolute,
    floor,
    ceil,
    round,
    truncate,
    less,
    less_or_equal,
    logical_not,
    select,
    pixel,
    pixel_of_item,
    pixel_in_row,
  };
  struct Instruction {
    Operation operation = Operation::constant;
    std::array<std::size_t, 3> inputs{};
    std::array<double, 2> value{};
  };
  /// The value of an instruction. If the instruction computes coordinates, `values` contains both coordinates, and for
  /// any other number it contains the number twice. If the instruction computes a sum of pixels, `pixels` contains the
  /// pixels with their weights.
  struct Number {
    std::array<double, 2> values{};
    std::vector<PixelWeight> pixels;
  };

  [[nodiscard]] std::optional<std::vector<Number>> run(std::array<double, 2> place, std::int64_t of_item) const;
  [[nodiscard]] bool run_gather(const Instruction& instruction, std::int64_t of_item,
                                std::vector<Number>& numbers) const;

  std::vector<Instruction> instructions_;  // the last one computes the samples
  AxisLayout layout_{{}, {}};
  PixelSource source_;
};

}  // namespace graft::passes::deformable_attention

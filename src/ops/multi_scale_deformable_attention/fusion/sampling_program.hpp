// What a network computes of one point of a grid and the pixels of an image, as numbers that can be tried.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "onnx/model.hpp"
#include "ops/multi_scale_deformable_attention/fusion/axis_layout.hpp"

namespace graft::passes::deformable_attention {

/// Where gathered pixels come from: an image [N,C,H,W], zeros round it, or the rows of one behind each other, [N,C,S].
struct PixelSource {
  onnx::Value* image = nullptr;
  std::int64_t height = 0;  ///< With the zeros; 0 where the rows lie behind each other.
  std::int64_t width = 0;
  std::int64_t count = 0;  ///< Pixels, with the zeros.
  std::int64_t top = 0;    ///< Rows of zeros above the image.
  std::int64_t left = 0;
  std::int64_t bottom = 0;
  std::int64_t right = 0;
  friend bool operator==(const PixelSource&, const PixelSource&) = default;
};

/// The part that a pixel has in a sample.
struct PixelWeight {
  std::int64_t pixel = 0;
  double weight = 0;
};

/// A position in pixels is scale * x + offset of a coordinate x of the grid.
struct PixelPosition {
  double scale = 0;
  double offset = 0;
};

/// A tensor of samples, each of one point of a grid [N,Q,P,2], that is computed element by element from the grid, from
/// constants and from gathered pixels. The samples are sums of pixels; which ones, and with what weights, is the same
/// formula for every item, query, point and channel.
class SamplingProgram {
 public:
  /// Nothing where it is computed in any other way; `why_not` then says so.
  [[nodiscard]] static std::optional<SamplingProgram> of(onnx::Value& samples, onnx::Value& grid, std::string& why_not);

  /// The axes of the samples, in item, channel, query and point.
  [[nodiscard]] const AxisLayout& layout() const { return layout_; }
  [[nodiscard]] const PixelSource& source() const { return source_; }
  /// Across and down, as they are before they become integers; nothing where there are none that each depend on one
  /// coordinate.
  [[nodiscard]] std::optional<std::array<PixelPosition, 2>> positions() const;
  /// The weights of all pixels at a point of the grid in one item; nothing where a gather reads beyond its input.
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
  /// Both coordinates of an element that has them apart, twice the same of any other. A pixel's or a sum of pixels'.
  struct Number {
    std::array<double, 2> values{};
    std::vector<PixelWeight> pixels;
  };

  [[nodiscard]] std::optional<std::vector<Number>> run(std::array<double, 2> place, std::int64_t of_item) const;
  [[nodiscard]] bool run_gather(const Instruction& instruction, std::int64_t of_item,
                                std::vector<Number>& numbers) const;

  std::vector<Instruction> instructions_;  // the last one makes the samples
  AxisLayout layout_{{}, {}};
  PixelSource source_;
};

}  // namespace graft::passes::deformable_attention

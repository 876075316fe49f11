// Lines of a Replacement that compute with quantized integers: their real numbers, and integers of real numbers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "passes/lowering/lowering.hpp"

namespace graft::passes {

[[nodiscard]] inline bool is_8_bit(onnx::ElementType type) {
  return type == onnx::ElementType::u8 || type == onnx::ElementType::i8;
}

/// Returns the name of an input of 8 bits minus its zero point, in f32. `per_channel` is the shape of a zero point for
/// each channel.
std::string centered(Replacement& result, const Site& site, std::size_t x, std::size_t zero,
                     const std::vector<std::int64_t>& per_channel);

/// Returns whether the options request i8 with the zero point 0. The lowerings of operators that compute with quantized
/// integers then write QuantizeLinear and DequantizeLinear, which a later lowering changes to that form.
[[nodiscard]] bool is_symmetric(Site& site);

/// Adds the nodes that dequantize an input, (x - zero point) * scale, and returns the name of their f32 result. `axis`
/// is the axis of the scales.
std::string dequantized(Replacement& result, Site& site, std::size_t x, std::size_t scale, std::size_t zero,
                        int axis = 1);

/// Writes lines that round x, add the zero point, limit the sum and cast it to the type `type`.
void give_quantized(Replacement& result, const std::string& y, const std::string& x, const std::string& zero,
                    onnx::ElementType type);

/// Writes output 0: the real numbers `y`, divided by a scale and rounded to integers of a type.
void give_steps(Replacement& result, Site& site, const std::string& y, std::size_t scale, std::size_t zero,
                onnx::ElementType type);

/// The sums of a product of integers: in f32, or in i32 if the product is split.
struct Sums {
  std::string name;
  bool is_real = false;
};

/// The inputs of a product of integer matrices.
struct MatrixInputs {
  std::size_t a = 0;
  std::size_t a_zero = 0;
  std::size_t b = 0;
  std::size_t b_zero = 0;
  bool transposes_a = false;
  bool transposes_b = false;
};

/// Writes the sums of a product of integer matrices. Returns nothing, after site.no(), if they may not be exact.
std::optional<Sums> multiply(Replacement& result, Site& site, const MatrixInputs& in);

/// The inputs that are scales of a product: scale a times scale b divided by scale y, or without y the product.
struct ScaleInputs {
  std::size_t a = 0;
  std::size_t b = 0;
  std::size_t y = 0;
};
/// Returns the name of the factor of integer sums. `per_channel` is its shape if b has a scale for each channel.
std::string scale_factor(Replacement& result, const Site& site, const ScaleInputs& in,
                         const std::vector<std::int64_t>& per_channel);

struct IntegerRange {
  std::int64_t low = 0;
  std::int64_t high = 0;
};
/// Returns the integers that a type of at most 16 bits has. Other types have the range 0 to 0.
[[nodiscard]] IntegerRange range_of(onnx::ElementType type);

}  // namespace graft::passes

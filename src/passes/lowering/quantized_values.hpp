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

/// Writes nodes that compute an 8-bit input minus its zero point in f32, and returns the name of the result. `x` and
/// `zero` are input indices. `per_channel` is the shape to which a 1-D zero point is reshaped; empty if there is one
/// per tensor.
std::string centered(Replacement& result, const Site& site, std::size_t x, std::size_t zero,
                     const std::vector<std::int64_t>& per_channel);

/// Returns whether ConvertOptions::quantized is `symmetric`. Lowerings of quantized operators then write QuantizeLinear
/// and DequantizeLinear nodes, which a later lowering changes to i8 with zero point 0.
[[nodiscard]] bool is_symmetric(Site& site);

/// Writes nodes that compute (x - zero point) * scale of an input, and returns the name of the f32 result. `x`, `scale`
/// and `zero` are input indices, and `axis` is the axis of the scales.
std::string dequantized(Replacement& result, Site& site, std::size_t x, std::size_t scale, std::size_t zero,
                        int axis = 1);

/// Writes nodes that compute `y`: round(x) plus the tensor `zero` (none if empty), clipped to the range of `type` and
/// cast to it.
void give_quantized(Replacement& result, const std::string& y, const std::string& x, const std::string& zero,
                    onnx::ElementType type);

/// Writes output y0, the f32 tensor `y` quantized to `type`: divided by the scale, rounded, and shifted by the zero
/// point. `scale` and `zero` are input indices; the zero point may be absent.
void give_steps(Replacement& result, Site& site, const std::string& y, std::size_t scale, std::size_t zero,
                onnx::ElementType type);

/// The name of the tensor that contains the sums of a product of integer tensors. If `is_real` is true, the tensor is
/// f32. Otherwise it is i32, because the product was split so that each partial sum is exact in f32.
struct Sums {
  std::string name;
  bool is_real = false;
};

/// The input indices of a product of integer matrices a and b and of their zero points, and whether a and b are
/// transposed.
struct MatrixInputs {
  std::size_t a = 0;
  std::size_t a_zero = 0;
  std::size_t b = 0;
  std::size_t b_zero = 0;
  bool transposes_a = false;
  bool transposes_b = false;
};

/// Writes the sums of a product of integer matrices. Returns nothing, and stores the reason with site.no(), if they
/// might not be exact.
std::optional<Sums> multiply(Replacement& result, Site& site, const MatrixInputs& in);

/// The input indices of the scales of a product of a and b. The factor of its integer sums is scale a * scale b / scale
/// y, or scale a * scale b if `y` is 0.
struct ScaleInputs {
  std::size_t a = 0;
  std::size_t b = 0;
  std::size_t y = 0;
};
/// Writes the f32 factor of integer sums, and returns its name. `per_channel` is the shape to which the factor is
/// reshaped if b has a scale for each channel.
std::string scale_factor(Replacement& result, const Site& site, const ScaleInputs& in,
                         const std::vector<std::int64_t>& per_channel);

struct IntegerRange {
  std::int64_t low = 0;
  std::int64_t high = 0;
};
/// Returns the range of an integer type of at most 16 bits, or the range 0 to 0 for any other type.
[[nodiscard]] IntegerRange range_of(onnx::ElementType type);

}  // namespace graft::passes

// The range and the rounding of int8 and f8.
#include "quant/plan/eight_bits.hpp"

#include <algorithm>
#include <cmath>

#include "graft/operator/float8.hpp"

namespace graft::quant {

std::string_view to_string(EightBits type) { return type == EightBits::int8 ? "int8" : "f8"; }

DType dtype_of(EightBits type) { return type == EightBits::int8 ? DType::i8 : DType::f8e4m3fn; }

onnx::ElementType element_type_of(EightBits type) { return onnx::to_element_type(dtype_of(type)); }

double largest_of(EightBits type) {
  constexpr double largest_step = 127;
  return type == EightBits::int8 ? largest_step : Float8E4M3FN::largest;
}

double round_to(EightBits type, double number) {
  if (type == EightBits::f8) return static_cast<double>(static_cast<float>(Float8E4M3FN(number)));
  const double largest = largest_of(type);
  return std::clamp(std::nearbyint(number), -largest, largest);
}

}  // namespace graft::quant

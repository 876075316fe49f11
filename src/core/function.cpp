// Wraps an operator's maths for floating-point types and for types with a scale.
#include "graft/operator/function.hpp"

namespace graft {

Function function_in_f32(std::string_view name, DType dtype, std::string_view maths) {
  if (is_quantized(dtype)) {
    const std::string_view type = dtype == DType::i8 ? "int8" : "f8e4m3fn";
    return {std::string(name) + (dtype == DType::i8 ? "_i8" : "_f8"),
            "x_step = Constant<value_float=@x_scale>()\n"
            "x32 = DequantizeLinear(x, x_step)\n" +
                std::string(maths) +
                "\n"
                "y_step = Constant<value_float=@y_scale>()\n"
                "zero = Constant<value=" +
                std::string(type) +
                "(0)>()\n"
                "y = QuantizeLinear(y32, y_step, zero)\n"};
  }
  return {std::string(name), "x32 = Cast<to=1>(x)\n" + std::string(maths) + "\ny = CastLike(y32, x)\n"};
}

}  // namespace graft

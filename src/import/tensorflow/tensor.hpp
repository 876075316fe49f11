// Converts TensorFlow's tensors and element types to Graft's.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "onnx/tensor_data.hpp"
#include "onnx/wire.hpp"

namespace graft::tensorflow {

class TensorProto;
class TensorShapeProto;

/// Returns the element type for a tensorflow.DataType code. Quantized types become integers of the same size. Returns
/// nothing for resources, variants and unknown codes.
[[nodiscard]] std::optional<onnx::ElementType> element_type(std::int32_t data_type);

/// Returns TensorFlow's name of a type, such as "float" or "resource", or "type 42" for an unknown code.
[[nodiscard]] std::string data_type_name(std::int32_t data_type);

/// A constant as the file stores it: a single element that is repeated for all elements is kept as one element.
struct Constant {
  onnx::TensorData tensor;         ///< The elements, with the shape `dims`, or a scalar if `is_filled`.
  std::vector<std::int64_t> dims;  ///< The shape of the constant.
  bool is_filled = false;          ///< Whether every element of the constant has the value of the scalar `tensor`.
};

/// Moves the data out of the proto, or returns the data that were cut out of the file (wire_piece_field). Throws Error
/// (whose message does not name the tensor) if sizes and fields contradict each other. If a file stores fewer elements
/// than the constant has, the last one is repeated: the constant is expanded if that takes at most 1 MiB for each
/// constant and `room` bytes for all of them; `room` is reduced. Beyond these limits, a constant of one repeated
/// element is returned with `is_filled`, and Error is thrown for others. The limits are needed because a few bytes of a
/// file can represent any size.
[[nodiscard]] Constant read_constant(TensorProto& proto, const onnx::Pieces& pieces, std::int64_t& room);

/// Returns the number in a tensor that has exactly one element; nothing for other tensors.
[[nodiscard]] std::optional<double> read_scalar(const TensorProto& proto);

}  // namespace graft::tensorflow

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

/// Moves the data out of the proto, or returns the data that were cut out of the file (wire_piece_field). If the file
/// stores fewer elements than the constant has, the last one is repeated. The constant is then expanded if this takes
/// at most 1 MiB and at most `room` bytes, which are subtracted from `room`. A larger constant is returned with
/// `is_filled` if the file stores one element, and is an Error otherwise, because a few bytes of a file could request
/// any size. Also throws Error if sizes and fields contradict each other. The messages do not name the tensor.
[[nodiscard]] Constant read_constant(TensorProto& proto, const onnx::Pieces& pieces, std::int64_t& room);

/// Returns the number in a tensor that has exactly one element; nothing for other tensors.
[[nodiscard]] std::optional<double> read_scalar(const TensorProto& proto);

}  // namespace graft::tensorflow

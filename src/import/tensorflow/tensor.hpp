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

/// Returns the element type for the number of a tensorflow.DataType. Quantized types are the integers that hold them.
/// Returns nothing for resources, variants and numbers that are not in the list.
[[nodiscard]] std::optional<onnx::ElementType> element_type(std::int32_t data_type);

/// Returns TensorFlow's name of a type, such as "float" or "resource", or "type 42" for an unknown number.
[[nodiscard]] std::string data_type_name(std::int32_t data_type);

/// A constant as the file holds it: a single element that stands for all elements is kept as one.
struct Constant {
  onnx::TensorData tensor;         ///< Has the shape `dims`, or is a scalar if `is_filled`.
  std::vector<std::int64_t> dims;  ///< The shape of the constant.
  bool is_filled = false;          ///< Whether each element is the scalar.
};

/// Moves the data out of the proto, or returns the piece that was cut out of its message. Throws Error (whose message
/// does not name the tensor) if sizes and fields do not agree. A constant whose last number stands for more elements is
/// expanded while that takes at most 1 MiB for each constant and `room` bytes for all, which are counted down: a few
/// bytes of a file can stand for any size.
[[nodiscard]] Constant read_constant(TensorProto& proto, const onnx::Pieces& pieces, std::int64_t& room);

/// Returns the number of a tensor that holds exactly one; nothing for others.
[[nodiscard]] std::optional<double> read_scalar(const TensorProto& proto);

}  // namespace graft::tensorflow

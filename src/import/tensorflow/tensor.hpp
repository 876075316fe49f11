// TensorFlow's tensors and element types as Graft's.
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

/// From the number of a tensorflow.DataType. Quantized types are the integers that hold them. Nothing for resources,
/// variants and what is not in the list.
[[nodiscard]] std::optional<onnx::ElementType> element_type(std::int32_t data_type);

/// "float", "resource", "type 42": as TensorFlow calls it.
[[nodiscard]] std::string data_type_name(std::int32_t data_type);

/// A constant as the file holds it: one element that stands for all is kept as one.
struct Constant {
  onnx::TensorData tensor;         ///< Of `dims`, or a scalar where `is_filled`.
  std::vector<std::int64_t> dims;  ///< The constant's own.
  bool is_filled = false;          ///< Each element of `dims` is the scalar.
};

/// Takes the data out of the proto, or out of the pieces that were cut out of its message. Throws Error (without a name
/// before it) where sizes and fields do not agree.
/// Constants whose last number stands for more are spread to their dims while that takes at most 1 MiB each, and
/// `room` bytes in all, which are counted down: a few bytes of a file can stand for any size.
[[nodiscard]] Constant read_constant(TensorProto& proto, const onnx::Pieces& pieces, std::int64_t& room);

/// The number of a tensor that holds one; nothing for any other.
[[nodiscard]] std::optional<double> read_scalar(const TensorProto& proto);

}  // namespace graft::tensorflow

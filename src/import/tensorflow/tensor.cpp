// Converts TensorFlow's tensors to Graft's: both forms of storage, and lists of elements whose last element is
// repeated.
#include "import/tensorflow/tensor.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <utility>

#include "graft/error.hpp"
#include "onnx/bytes_part.hpp"
#include "onnx/shape_inference.hpp"
#include "tensorflow/graph_def.pb.h"

namespace graft::tensorflow {
namespace {

struct TypeName {
  std::int32_t number;
  const char* name;
  onnx::ElementType type;
};

constexpr std::array types = {
    TypeName{1, "float", onnx::ElementType::f32},          TypeName{2, "double", onnx::ElementType::f64},
    TypeName{3, "int32", onnx::ElementType::i32},          TypeName{4, "uint8", onnx::ElementType::u8},
    TypeName{5, "int16", onnx::ElementType::i16},          TypeName{6, "int8", onnx::ElementType::i8},
    TypeName{7, "string", onnx::ElementType::string},      TypeName{8, "complex64", onnx::ElementType::complex64},
    TypeName{9, "int64", onnx::ElementType::i64},          TypeName{10, "bool", onnx::ElementType::boolean},
    TypeName{11, "qint8", onnx::ElementType::i8},          TypeName{12, "quint8", onnx::ElementType::u8},
    TypeName{13, "qint32", onnx::ElementType::i32},        TypeName{14, "bfloat16", onnx::ElementType::bf16},
    TypeName{15, "qint16", onnx::ElementType::i16},        TypeName{16, "quint16", onnx::ElementType::u16},
    TypeName{17, "uint16", onnx::ElementType::u16},        TypeName{18, "complex128", onnx::ElementType::complex128},
    TypeName{19, "half", onnx::ElementType::f16},          TypeName{20, "resource", onnx::ElementType::undefined},
    TypeName{21, "variant", onnx::ElementType::undefined}, TypeName{22, "uint32", onnx::ElementType::u32},
    TypeName{23, "uint64", onnx::ElementType::u64},
};

const TypeName* find_type(std::int32_t number) {
  const auto* const found =
      std::find_if(types.begin(), types.end(), [&](const TypeName& type) { return type.number == number; });
  return found == types.end() ? nullptr : found;
}

/// Returns the bytes of the values in the typed field of the element type; there may be fewer values than elements.
std::string typed_bytes(const TensorProto& proto, onnx::ElementType type) {
  switch (type) {
    case onnx::ElementType::f32: return onnx::pack<float>(proto.float_val());
    case onnx::ElementType::f64: return onnx::pack<double>(proto.double_val());
    case onnx::ElementType::i32: return onnx::pack<std::int32_t>(proto.int_val());
    case onnx::ElementType::u8: return onnx::pack<std::uint8_t>(proto.int_val());
    case onnx::ElementType::i8: return onnx::pack<std::int8_t>(proto.int_val());
    case onnx::ElementType::i16: return onnx::pack<std::int16_t>(proto.int_val());
    case onnx::ElementType::u16: return onnx::pack<std::uint16_t>(proto.int_val());
    case onnx::ElementType::i64: return onnx::pack<std::int64_t>(proto.int64_val());
    case onnx::ElementType::u32: return onnx::pack<std::uint32_t>(proto.uint32_val());
    case onnx::ElementType::u64: return onnx::pack<std::uint64_t>(proto.uint64_val());
    case onnx::ElementType::boolean: return onnx::pack<std::uint8_t>(proto.bool_val());
    case onnx::ElementType::f16:
    case onnx::ElementType::bf16: return onnx::pack<std::uint16_t>(proto.half_val());
    default: throw Error(fmt::format("a constant has the type {}, which Graft does not support", to_string(type)));
  }
}

constexpr std::int64_t most_filled_bytes = 1 << 20;

std::string repeated(const std::string& element, std::int64_t count) {
  std::string raw;
  raw.reserve(element.size() * static_cast<std::size_t>(count));
  for (std::int64_t i = 0; i < count; ++i) raw += element;
  return raw;
}

onnx::TensorData tensor_of(onnx::ElementType type, std::vector<std::int64_t> dims, onnx::Bytes bytes) {
  onnx::TensorData tensor;
  tensor.type = type;
  tensor.dims = std::move(dims);
  tensor.bytes = std::move(bytes);
  return tensor;
}

}  // namespace

std::optional<onnx::ElementType> element_type(std::int32_t data_type) {
  // The type code of a reference to a variable is the code of the plain type plus 100.
  constexpr std::int32_t reference = 100;
  const TypeName* found = find_type(data_type > reference ? data_type - reference : data_type);
  if (found == nullptr || found->type == onnx::ElementType::undefined) return std::nullopt;
  return found->type;
}

std::string data_type_name(std::int32_t data_type) {
  const TypeName* found = find_type(data_type);
  return found == nullptr ? fmt::format("type {}", data_type) : found->name;
}

Constant read_constant(TensorProto& proto, const onnx::Pieces& pieces, std::int64_t& room) {
  const auto type = element_type(proto.dtype());
  if (!type)
    throw Error(fmt::format("a constant has the type {}, which Graft does not support", data_type_name(proto.dtype())));
  if (proto.tensor_shape().unknown_rank()) throw Error("the rank of a constant is unknown; it must have a shape");
  const int rank = proto.tensor_shape().dim_size();
  if (static_cast<std::size_t>(rank) > onnx::highest_rank) {
    throw Error(fmt::format("a constant has {} dimensions; it may have at most {}", rank, onnx::highest_rank));
  }
  Constant constant;
  for (const auto& dim : proto.tensor_shape().dim()) {
    if (dim.size() < 0)
      throw Error(fmt::format("a constant has the dimension {}; every dimension must be at least 0", dim.size()));
    constant.dims.push_back(dim.size());
  }
  onnx::TensorData shape_only;
  shape_only.dims = constant.dims;
  const std::int64_t count = shape_only.element_count();

  if (*type == onnx::ElementType::string) {
    const std::int64_t found = proto.string_val_size();
    if (found != count)
      throw Error(fmt::format("a constant has {} strings; its shape [{}] requires {}", found,
                              fmt::join(constant.dims, ", "), count));
    onnx::TensorData tensor = onnx::TensorData::from_strings({proto.string_val().begin(), proto.string_val().end()});
    tensor.dims = constant.dims;
    constant.tensor = std::move(tensor);
    return constant;
  }
  const std::int64_t size = bits_of(*type) / 8;
  std::int64_t wanted = 0;
  if (__builtin_mul_overflow(count, size, &wanted)) {
    throw Error(fmt::format("a constant of shape [{}] has more than 2^63 bytes", fmt::join(constant.dims, ", ")));
  }
  if (proto.piece() != 0 || !proto.tensor_content().empty()) {
    onnx::Bytes content =
        proto.piece() != 0 ? pieces.at(proto.piece()) : onnx::Bytes(std::move(*proto.mutable_tensor_content()));
    const auto found = static_cast<std::int64_t>(content.size());
    if (found != wanted) {
      throw Error(fmt::format("a constant has {} bytes; its shape [{}] of type {} requires {}", found,
                              fmt::join(constant.dims, ", "), to_string(*type), wanted));
    }
    constant.tensor = tensor_of(*type, constant.dims, std::move(content));
    return constant;
  }
  std::string raw = typed_bytes(proto, *type);
  const std::int64_t found = static_cast<std::int64_t>(raw.size()) / size;
  if (found > count) {
    throw Error(fmt::format("a constant has {} values; its shape [{}] may have at most {}", found,
                            fmt::join(constant.dims, ", "), count));
  }
  if (found == count) {
    constant.tensor = tensor_of(*type, constant.dims, onnx::Bytes(std::move(raw)));
    return constant;
  }
  // TensorFlow omits repetitions of the last number; an empty list represents zeros.
  const std::string last = found == 0 ? std::string(static_cast<std::size_t>(size), '\0')
                                      : raw.substr(raw.size() - static_cast<std::size_t>(size));
  const std::int64_t allowed = std::min(most_filled_bytes, room);
  if (wanted > allowed) {
    if (found > 1) {
      throw Error(
          fmt::format("a constant has {} values for the {} elements of shape [{}]: repeating the last value requires "
                      "more than {} bytes, which Graft does not support",
                      found, count, fmt::join(constant.dims, ", "), allowed));
    }
    constant.is_filled = true;
    constant.tensor = tensor_of(*type, {}, onnx::Bytes(last));
    return constant;
  }
  raw += repeated(last, count - found);
  room -= wanted;
  constant.tensor = tensor_of(*type, constant.dims, onnx::Bytes(std::move(raw)));
  return constant;
}

std::optional<double> read_scalar(const TensorProto& proto) {
  constexpr std::size_t most = 256;  // Enough bytes for one number and its shape, so that weights are never copied.
  if (proto.piece() != 0 || proto.ByteSizeLong() > most) return std::nullopt;
  TensorProto copy = proto;
  std::int64_t room = most;
  return read_constant(copy, onnx::Pieces({}, nullptr), room).tensor.scalar();
}

}  // namespace graft::tensorflow

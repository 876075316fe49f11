// Converts between TensorRT's types and Graft's.
#include "adapters/tensorrt/convert.hpp"

#include <array>
#include <cstring>
#include <stdexcept>
#include <unordered_map>
#include <utility>

namespace graft::tensorrt {
namespace {

using nvinfer1::PluginField;
using nvinfer1::PluginFieldType;

constexpr std::array<std::pair<nvinfer1::DataType, DType>, 9> dtypes{{
    {nvinfer1::DataType::kFLOAT, DType::f32},
    {nvinfer1::DataType::kHALF, DType::f16},
    {nvinfer1::DataType::kBF16, DType::bf16},
    {nvinfer1::DataType::kINT8, DType::i8},
    {nvinfer1::DataType::kUINT8, DType::u8},
    {nvinfer1::DataType::kINT32, DType::i32},
    {nvinfer1::DataType::kINT64, DType::i64},
    {nvinfer1::DataType::kBOOL, DType::boolean},
    {nvinfer1::DataType::kFP8, DType::f8e4m3fn},
}};

constexpr std::array<std::pair<nvinfer1::TensorFormat, Layout>, 3> layouts{{
    {nvinfer1::TensorFormat::kLINEAR, Layout::linear},
    {nvinfer1::TensorFormat::kHWC8, Layout::hwc8},
    {nvinfer1::TensorFormat::kCHW32, Layout::chw32},
}};

const char* name_of(PluginFieldType type) {
  switch (type) {
    case PluginFieldType::kFLOAT16: return "FLOAT16";
    case PluginFieldType::kFLOAT32: return "FLOAT32";
    case PluginFieldType::kFLOAT64: return "FLOAT64";
    case PluginFieldType::kINT8: return "INT8";
    case PluginFieldType::kINT16: return "INT16";
    case PluginFieldType::kINT32: return "INT32";
    case PluginFieldType::kINT64: return "INT64";
    case PluginFieldType::kCHAR: return "CHAR";
    case PluginFieldType::kDIMS: return "DIMS";
    default: return "a type that Graft does not support";
  }
}

/// Returns the elements of a field, read as `Stored` and converted to `Wanted`. Each element is copied, because
/// TensorRT does not guarantee the alignment of serialized fields in an engine.
template <class Stored, class Wanted>
std::vector<Wanted> read_numbers(const PluginField& field) {
  std::vector<Wanted> numbers;
  numbers.reserve(static_cast<std::size_t>(field.length));
  for (std::int32_t i = 0; i < field.length; ++i) {
    Stored number;
    std::memcpy(&number, static_cast<const char*>(field.data) + static_cast<std::size_t>(i) * sizeof(Stored),
                sizeof(Stored));
    numbers.push_back(static_cast<Wanted>(number));
  }
  return numbers;
}

Status wrong_type(const PluginField& field, AttributeType wanted) {
  return invalid_argument("field `" + std::string(field.name) + "` has type " + name_of(field.type) +
                          "; it must have type " + name_of(field_type(wanted)));
}

template <class Number>
Status one_number(const PluginField& field, const std::vector<Number>& numbers, AttributeValue& result) {
  if (numbers.size() != 1) {
    return invalid_argument("field `" + std::string(field.name) + "` has " + std::to_string(numbers.size()) +
                            " elements; it must have one");
  }
  result = numbers.front();
  return {};
}

/// Converts dimensions between TensorRT and Graft. read() returns a symbol with a generated name for an expression of
/// TensorRT; write() builds TensorRT's expression for a Dim that contains such symbols.
class ExpressionWriter {
 public:
  explicit ExpressionWriter(nvinfer1::IExprBuilder& builder) : builder_(builder) {}

  Dim read(const nvinfer1::IDimensionExpr& expression) {
    if (expression.isConstant()) return {expression.getConstantValue()};
    const std::string name = "d" + std::to_string(symbols_.size());
    symbols_.emplace(name, &expression);
    return Dim::symbol(name);
  }

  const nvinfer1::IDimensionExpr* write(const Dim& dim) {  // NOLINT(misc-no-recursion): as deep as the expression
    if (dim.is_constant()) return builder_.constant(dim.value());
    if (dim.kind() == Dim::Kind::symbol) {
      const nvinfer1::IDimensionExpr* symbol = symbols_.at(dim.name());
      return is_in_optimum_ && symbol->isSizeTensor() ? builder_.constant(size_in_optimum) : symbol;
    }
    if (dim.kind() == Dim::Kind::data_size) {
      const nvinfer1::IDimensionExpr*& size =
          sizes_[dim.size_output()];  // A size tensor is declared once, even if several dimensions use it.
      if (size == nullptr) {
        is_in_optimum_ = true;
        const nvinfer1::IDimensionExpr* optimum = write(dim.left());
        is_in_optimum_ = false;
        size = made(
            builder_.declareSizeTensor(static_cast<std::int32_t>(dim.size_output()), *optimum, *write(dim.right())),
            dim);
      }
      return size;
    }
    return made(builder_.operation(operation(dim.kind()), *write(dim.left()), *write(dim.right())), dim);
  }

 private:
  static const nvinfer1::IDimensionExpr* made(const nvinfer1::IDimensionExpr* expression, const Dim& dim) {
    if (expression == nullptr)
      throw std::invalid_argument("TensorRT does not accept the expression of a dimension, " + dim.to_string());
    return expression;
  }
  static nvinfer1::DimensionOperation operation(Dim::Kind kind) {
    switch (kind) {
      case Dim::Kind::subtract: return nvinfer1::DimensionOperation::kSUB;
      case Dim::Kind::multiply: return nvinfer1::DimensionOperation::kPROD;
      case Dim::Kind::minimum: return nvinfer1::DimensionOperation::kMIN;
      case Dim::Kind::maximum: return nvinfer1::DimensionOperation::kMAX;
      case Dim::Kind::floor_divide: return nvinfer1::DimensionOperation::kFLOOR_DIV;
      case Dim::Kind::ceil_divide: return nvinfer1::DimensionOperation::kCEIL_DIV;
      case Dim::Kind::equal: return nvinfer1::DimensionOperation::kEQUAL;
      case Dim::Kind::less: return nvinfer1::DimensionOperation::kLESS;
      case Dim::Kind::add:
      case Dim::Kind::constant:
      case Dim::Kind::symbol:
      case Dim::Kind::data_size: break;
    }
    return nvinfer1::DimensionOperation::kSUM;
  }

  /// write() passes an optimum to declareSizeTensor. An optimum must not depend on the size tensor of another layer
  /// (NvInferRuntime.h), so this value replaces such a size tensor in it. The value is small because an optimum may not
  /// exceed the largest size. TensorRT-RTX 1.7.1 never passes an expression for which isSizeTensor() is true.
  static constexpr std::int64_t size_in_optimum = 1;

  nvinfer1::IExprBuilder& builder_;
  bool is_in_optimum_ = false;
  std::unordered_map<std::string, const nvinfer1::IDimensionExpr*> symbols_;
  std::unordered_map<std::size_t, const nvinfer1::IDimensionExpr*> sizes_;  // keyed by the index of the size output
};

}  // namespace

std::optional<DType> from_tensorrt(nvinfer1::DataType type) {
  for (const auto& [theirs, ours] : dtypes) {
    if (theirs == type) return ours;
  }
  return std::nullopt;
}

nvinfer1::DataType to_tensorrt(DType dtype) {
  for (const auto& [theirs, ours] : dtypes) {
    if (ours == dtype) return theirs;
  }
  return nvinfer1::DataType::kFLOAT;  // Not reached: the table contains every DType.
}

std::optional<Layout> from_tensorrt(nvinfer1::TensorFormat format) {
  for (const auto& [theirs, ours] : layouts) {
    if (theirs == format) return ours;
  }
  return std::nullopt;
}

nvinfer1::TensorFormat to_tensorrt(Layout layout) {
  for (const auto& [theirs, ours] : layouts) {
    if (ours == layout) return theirs;
  }
  return nvinfer1::TensorFormat::kLINEAR;  // Not reached: the table contains every Layout.
}

Status from_tensorrt(const nvinfer1::PluginTensorDesc& desc, TensorDesc& result) {
  const auto dtype = from_tensorrt(desc.type);
  const auto layout = from_tensorrt(desc.format);
  if (!dtype || !layout)
    return unsupported("TensorRT passed a tensor with a type or format that Graft does not support");
  if (desc.dims.nbDims < 0 || desc.dims.nbDims > Extents::max_rank) {
    return invalid_argument("a tensor must have 0 to 8 dimensions; found " + std::to_string(desc.dims.nbDims));
  }
  result.dtype = *dtype;
  result.layout = *layout;
  result.extents = {};
  for (std::int32_t i = 0; i < desc.dims.nbDims; ++i) {
    if (desc.dims.d[i] < 0) {
      return invalid_argument("a dimension must be at least 0 at run time; found " + std::to_string(desc.dims.d[i]));
    }
    result.extents.push_back(desc.dims.d[i]);
  }
  return {};
}

PluginFieldType field_type(AttributeType type) {
  switch (type) {
    case AttributeType::float_number:
    case AttributeType::float_numbers: return PluginFieldType::kFLOAT32;
    case AttributeType::integer:
    case AttributeType::integers: return PluginFieldType::kINT64;
    case AttributeType::text: return PluginFieldType::kCHAR;
  }
  return PluginFieldType::kUNKNOWN;
}

Status from_tensorrt(const PluginField& field, AttributeType wanted, AttributeValue& result) {
  if (field.length < 0 || (field.length > 0 && field.data == nullptr)) {
    return invalid_argument("field `" + std::string(field.name) + "` has no data");
  }
  if (wanted == AttributeType::text) {
    if (field.type != PluginFieldType::kCHAR) return wrong_type(field, wanted);
    const std::string_view characters(static_cast<const char*>(field.data), static_cast<std::size_t>(field.length));
    result = std::string(characters.substr(0, characters.find('\0')));  // Some callers count the terminating zero.
    return {};
  }
  if (wanted == AttributeType::float_number || wanted == AttributeType::float_numbers) {
    std::vector<float> numbers;
    switch (field.type) {
      case PluginFieldType::kFLOAT32: numbers = read_numbers<float, float>(field); break;
      case PluginFieldType::kFLOAT64: numbers = read_numbers<double, float>(field); break;
      default: return wrong_type(field, wanted);
    }
    if (wanted == AttributeType::float_number) return one_number(field, numbers, result);
    result = std::move(numbers);
    return {};
  }
  std::vector<std::int64_t> numbers;
  switch (field.type) {
    case PluginFieldType::kINT8: numbers = read_numbers<std::int8_t, std::int64_t>(field); break;
    case PluginFieldType::kINT16: numbers = read_numbers<std::int16_t, std::int64_t>(field); break;
    case PluginFieldType::kINT32: numbers = read_numbers<std::int32_t, std::int64_t>(field); break;
    case PluginFieldType::kINT64: numbers = read_numbers<std::int64_t, std::int64_t>(field); break;
    default: return wrong_type(field, wanted);
  }
  if (wanted == AttributeType::integer) return one_number(field, numbers, result);
  result = std::move(numbers);
  return {};
}

PluginField to_field(const char* name, const AttributeValue& value) {
  PluginField field{name, nullptr, field_type(type_of(value)), 1};
  const auto set_list = [&](const auto& list) {
    field.data = list.data();
    field.length = static_cast<std::int32_t>(list.size());
  };
  switch (type_of(value)) {
    case AttributeType::float_number: field.data = &std::get<float>(value); break;
    case AttributeType::integer: field.data = &std::get<std::int64_t>(value); break;
    case AttributeType::text: set_list(std::get<std::string>(value)); break;
    case AttributeType::float_numbers: set_list(std::get<std::vector<float>>(value)); break;
    case AttributeType::integers: set_list(std::get<std::vector<std::int64_t>>(value)); break;
  }
  return field;
}

Status infer_shapes(const Operator& op, std::span<const nvinfer1::DimsExprs> inputs,
                    std::span<const nvinfer1::DimsExprs> shape_inputs, std::span<nvinfer1::DimsExprs> outputs,
                    nvinfer1::IExprBuilder& builder) {
  const std::size_t wanted = op.type().shape_input_count();
  if (shape_inputs.size() != wanted) {
    return invalid_argument(std::string(op.type().name) + " has " + std::to_string(wanted) +
                            " shape inputs, but TensorRT passed " + std::to_string(shape_inputs.size()) +
                            "; in an ONNX file the attribute `tensorrt_plugin_shape_input_indices` of the node must "
                            "list them, which Graft writes if the operator's library is loaded");
  }
  ExpressionWriter writer(builder);
  std::vector<Shape> input_shapes;
  for (const auto& group : {inputs, shape_inputs}) {
    for (const nvinfer1::DimsExprs& input : group) {
      Shape& shape = input_shapes.emplace_back();
      for (std::int32_t axis = 0; axis < input.nbDims; ++axis) shape.push_back(writer.read(*input.d[axis]));
    }
  }
  std::vector<Shape> output_shapes;
  if (Status status = op.infer_shapes(input_shapes, output_shapes); !status.ok()) return status;
  if (output_shapes.size() != outputs.size()) {
    return invalid_argument(std::string(op.type().name) + " has " + std::to_string(output_shapes.size()) +
                            " outputs, but TensorRT requests " + std::to_string(outputs.size()));
  }
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    if (output_shapes[i].size() > static_cast<std::size_t>(Extents::max_rank)) {
      return unsupported("output " + std::to_string(i) + " has " + std::to_string(output_shapes[i].size()) +
                         " dimensions; TensorRT supports at most 8");
    }
    outputs[i].nbDims = static_cast<std::int32_t>(output_shapes[i].size());
    for (std::size_t axis = 0; axis < output_shapes[i].size(); ++axis) {
      outputs[i].d[axis] = writer.write(output_shapes[i][axis]);
    }
  }
  return {};
}

}  // namespace graft::tensorrt

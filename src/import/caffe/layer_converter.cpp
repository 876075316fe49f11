// Functions that the converters of all layers use.
#include "import/caffe/layer_converter.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstring>
#include <iterator>
#include <limits>
#include <memory>
#include <span>

#include "graft/error.hpp"
#include "import/messages.hpp"
#include "onnx/shape_inference.hpp"

namespace graft::caffe {

void LayerConverter::fail(const std::string& message) const {
  throw Error(fmt::format("layer '{}' ({}): {}", layer_.name(), layer_.type(), message));
}

void LayerConverter::check_positive(const Ints& numbers, std::string_view what) const {
  for (const std::int64_t each : numbers) {
    if (each < 1) fail(fmt::format("{} must be at least 1; found [{}]", what, fmt::join(numbers, ", ")));
  }
}

void LayerConverter::set(Operator& op, std::string_view attribute, const AttributeValue& value) const {
  const Status status = op.set(attribute, value);
  if (!status.ok()) fail(std::string(status.message()));
}

onnx::Value* LayerConverter::input(std::size_t i) const {
  if (i >= inputs_.size()) fail(fmt::format("it has {} bottoms; its type needs at least {}", inputs_.size(), i + 1));
  read_inputs_.insert(i);
  return inputs_[i];
}

const onnx::Value* LayerConverter::unread_input() const {
  for (std::size_t i = 0; i < inputs_.size(); ++i) {
    if (!read_inputs_.contains(i)) return inputs_[i];
  }
  return nullptr;
}

Ints LayerConverter::dims(std::size_t i) const {
  const onnx::Value* value = input(i);
  if (!value->shape) fail(fmt::format("the shape of '{}' is unknown; {}", value->name, give_shapes()));
  Ints result;
  for (const Dim& dim : *value->shape) {
    // Caffe itself counts the elements of a blob in 32 bits, so arithmetic on sizes needs no further overflow checks.
    constexpr std::int64_t most = std::numeric_limits<std::int32_t>::max();
    if (dim.is_constant() && (dim.value() < 0 || dim.value() > most)) {
      fail(fmt::format("a dimension of '{}' is {}; it must be between 0 and {}", value->name, dim.value(), most));
    }
    result.push_back(dim.is_constant() ? dim.value() : -1);
  }
  return result;
}

std::int64_t LayerConverter::size(std::size_t i, std::size_t axis) const {
  const Ints all = dims(i);
  if (axis >= all.size())
    fail(fmt::format("'{}' has {} dimensions; it must have at least {}", input(i)->name, all.size(), axis + 1));
  if (all[axis] < 0) {
    fail(fmt::format("dimension {} of '{}' is unknown; {}", axis, input(i)->name, give_shapes()));
  }
  return all[axis];
}

std::int64_t LayerConverter::small_size(std::size_t i, std::size_t axis) const {
  constexpr std::int64_t most = std::int64_t{1} << 24;
  const std::int64_t found = size(i, axis);
  if (found < 1 || found > most) {
    fail(fmt::format("dimension {} of '{}' is {}; it must be between 1 and {}", axis, input(i)->name, found, most));
  }
  return found;
}

std::size_t LayerConverter::axis(std::int64_t axis, std::size_t rank) const {
  const auto count = static_cast<std::int64_t>(rank);
  if (axis < -count || axis >= count)
    fail(fmt::format("axis {} is out of range; a blob of {} dimensions has the axes {} to {}", axis, rank, -count,
                     count - 1));
  return static_cast<std::size_t>(axis < 0 ? axis + count : axis);
}

onnx::TensorData LayerConverter::blob(std::size_t i) {
  if (i >= static_cast<std::size_t>(layer_.blobs_size())) {
    fail(fmt::format(
        "it has {} blobs of weights, but needs at least {}; check that the .caffemodel belongs to this network",
        layer_.blobs_size(), i + 1));
  }
  BlobProto& blob = *layer_.mutable_blobs(static_cast<int>(i));
  onnx::TensorData tensor;
  tensor.type = onnx::ElementType::f32;
  if (blob.has_shape()) {
    tensor.dims.assign(blob.shape().dim().begin(), blob.shape().dim().end());
  } else {
    tensor.dims = {blob.num(), blob.channels(), blob.height(), blob.width()};
  }
  if (tensor.dims.size() > onnx::highest_rank)
    fail(fmt::format("blob {} of its weights has {} dimensions; it may have at most {}", i, tensor.dims.size(),
                     onnx::highest_rank));
  for (const std::int64_t dim : tensor.dims) {
    if (dim < 0)
      fail(fmt::format("blob {} of its weights has the dimension {}; every dimension must be at least 0", i, dim));
  }
  read_.insert(i);
  if (!blob.raw_data().empty()) return raw_blob(i, blob, std::move(tensor));
  const onnx::Bytes piece = blob.piece() == 0 ? onnx::Bytes() : pieces_.at(blob.piece());
  if (piece.size() % sizeof(float) != 0)
    fail(fmt::format("blob {} of its weights has {} bytes, which is not a multiple of 4, the size of an f32 element", i,
                     piece.size()));
  const bool is_double = blob.data_size() == 0 && blob.double_data_size() != 0;
  const auto found = blob.piece() != 0
                         ? static_cast<std::int64_t>(piece.size() / sizeof(float))
                         : static_cast<std::int64_t>(is_double ? blob.double_data_size() : blob.data_size());
  if (found != tensor.element_count()) {
    fail(fmt::format("blob {} of its weights has {} elements; its shape [{}] requires {}", i, found,
                     fmt::join(tensor.dims, ", "), tensor.element_count()));
  }
  if (blob.piece() != 0) {
    tensor.bytes = piece;
    return tensor;
  }
  if (is_double) {
    std::string raw(static_cast<std::size_t>(found) * sizeof(float), '\0');
    char* out = raw.data();
    for (const double number : blob.double_data()) {
      const auto rounded = static_cast<float>(number);
      std::memcpy(out, &rounded, sizeof rounded);
      out += sizeof rounded;
    }
    BlobProto().Swap(&blob);  // Swap frees the memory at once.
    tensor.bytes = onnx::Bytes(std::move(raw));
    return tensor;
  }
  // The elements stay in protobuf's memory and are not copied, because weights take most of the memory.
  const auto owner = std::make_shared<BlobProto>();
  owner->Swap(&blob);
  tensor.bytes = onnx::Bytes(owner, std::span(reinterpret_cast<const char*>(owner->data().data()),
                                              static_cast<std::size_t>(found) * sizeof(float)));
  return tensor;
}

onnx::TensorData LayerConverter::raw_blob(std::size_t i, BlobProto& blob, onnx::TensorData tensor) const {
  switch (blob.raw_data_type()) {
    case BlobProto::DOUBLE: tensor.type = onnx::ElementType::f64; break;
    case BlobProto::FLOAT: break;
    case BlobProto::FLOAT16: tensor.type = onnx::ElementType::f16; break;
    case BlobProto::INT:
    case BlobProto::UINT:
      fail(fmt::format(
          "blob {} of its weights contains integers; only the types FLOAT16, FLOAT and DOUBLE are supported", i));
  }
  const auto wanted = static_cast<std::size_t>(tensor.element_count()) * bits_of(tensor.type) / 8;
  if (blob.raw_data().size() != wanted) {
    fail(fmt::format("blob {} of its weights has {} bytes; its shape [{}] requires {}", i, blob.raw_data().size(),
                     fmt::join(tensor.dims, ", "), wanted));
  }
  tensor.bytes = onnx::Bytes(std::move(*blob.mutable_raw_data()));
  if (tensor.type == onnx::ElementType::f32) return tensor;
  return onnx::TensorData::from_numbers(onnx::ElementType::f32, tensor.dims, tensor.numbers().value());
}

namespace {

Ints without_ones(const Ints& dims) {
  Ints result;
  std::copy_if(dims.begin(), dims.end(), std::back_inserter(result), [](std::int64_t dim) { return dim != 1; });
  return result;
}

}  // namespace

onnx::Value* LayerConverter::weights(std::size_t i, const Ints& dims, std::string_view what) {
  onnx::TensorData tensor = blob(i);
  for (const std::int64_t dim : dims) {
    if (dim < 0)
      fail(fmt::format("{}: the parameters of the layer require the shape [{}], which has a negative dimension", what,
                       fmt::join(dims, ", ")));
  }
  if (without_ones(tensor.dims) != without_ones(dims)) {
    fail(
        fmt::format("{}: the trained blob has the shape [{}], but the parameters of the layer require [{}]; check that "
                    "the .caffemodel belongs to this network",
                    what, fmt::join(tensor.dims, ", "), fmt::join(dims, ", ")));
  }
  tensor.dims = dims;
  return graph().add_constant(fmt::format("{}:{}", name(), what), std::move(tensor));
}

void LayerConverter::give(std::size_t i, onnx::Value* value) {
  if (results_.size() <= i) results_.resize(i + 1, nullptr);
  results_[i] = value;
}

}  // namespace graft::caffe

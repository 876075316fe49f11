// Tensors of the public interface: their conversion, and the files that contain them.
#include "toolkit/tensors.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <filesystem>
#include <utility>

#include "graft/error.hpp"
#include "io/npy.hpp"

namespace graft::toolkit {
namespace {

template <class AnyTensor>
std::size_t byte_count(const AnyTensor& tensor, const std::string& what) {
  std::size_t bytes = size_of(tensor.dtype);
  for (const std::int64_t size : tensor.shape) {
    if (size < 0 || __builtin_mul_overflow(bytes, static_cast<std::size_t>(size), &bytes)) {
      throw Error(
          fmt::format("{}: found the shape [{}]; every size must be at least 0, and the tensor must fit in memory",
                      what, fmt::join(tensor.shape, ", ")));
    }
  }
  return bytes;
}

template <class AnyTensor>
void check(const AnyTensor& tensor, const std::string& what) {
  const std::size_t bytes = byte_count(tensor, what);
  if (tensor.data.size() == bytes) return;
  throw Error(fmt::format("{}: found {} bytes of data; a tensor of type {} and shape [{}] has {} bytes", what,
                          tensor.data.size(), to_string(tensor.dtype), fmt::join(tensor.shape, ", "), bytes));
}

constexpr std::array tensor_types{TensorType::f32,     TensorType::f16,     TensorType::bf16, TensorType::f64,
                                  TensorType::i8,      TensorType::u8,      TensorType::i16,  TensorType::u16,
                                  TensorType::i32,     TensorType::u32,     TensorType::i64,  TensorType::u64,
                                  TensorType::boolean, TensorType::f8e4m3fn};

onnx::ElementType internal_type(TensorType type) { return static_cast<onnx::ElementType>(type); }

TensorType public_type(onnx::ElementType type, const std::string& what) {
  if (is_tensor_type(type)) return static_cast<TensorType>(type);
  std::vector<std::string> allowed;
  for (const TensorType known : tensor_types) allowed.push_back(to_string(known));
  throw Error(fmt::format("{}: found type {}; the type must be one of {}", what, onnx::to_string(type),
                          fmt::join(allowed, ", ")));
}

/// Returns the tensor of an array, whose type is always a TensorType.
Tensor to_tensor(io::NpyArray array) {
  return {.dtype = static_cast<TensorType>(array.type), .shape = std::move(array.shape), .data = std::move(array.data)};
}

io::NpzArrays to_arrays(const TensorViews& tensors, const std::filesystem::path& file) {
  io::NpzArrays arrays;
  for (const auto& [name, tensor] : to_internal(tensors, file.string() + ": array")) {
    io::NpyArray array{.type = tensor.type, .shape = tensor.dims, .data = std::vector<std::byte>(tensor.bytes.size())};
    if (!array.data.empty()) std::memcpy(array.data.data(), tensor.bytes.data(), array.data.size());
    arrays.emplace(name, std::move(array));
  }
  return arrays;
}

bool is_archive(const std::filesystem::path& file) { return file.extension() == ".npz"; }

}  // namespace

std::size_t size_of(TensorType type) { return static_cast<std::size_t>(bits_of(internal_type(type))) / 8; }

std::string to_string(TensorType type) { return onnx::to_string(internal_type(type)); }

std::optional<TensorType> parse_tensor_type(std::string_view text) {
  for (const TensorType type : tensor_types) {
    if (text == to_string(type)) return type;
  }
  return std::nullopt;
}

bool is_tensor_type(onnx::ElementType type) {
  return std::any_of(tensor_types.begin(), tensor_types.end(),
                     [&](TensorType known) { return internal_type(known) == type; });
}

runtime::TensorMap to_internal(const TensorViews& tensors, const std::string& what) {
  runtime::TensorMap made;
  for (const auto& [name, tensor] : tensors) {
    check(tensor, fmt::format("{} '{}'", what, name));
    onnx::TensorData data;
    data.type = internal_type(tensor.dtype);
    data.dims = tensor.shape;
    data.bytes = onnx::Bytes(tensor.owner, {reinterpret_cast<const char*>(tensor.data.data()), tensor.data.size()});
    made.emplace(name, std::move(data));
  }
  return made;
}

runtime::TensorMap to_internal(const Tensors& tensors, const TensorViews& views, const std::string& what) {
  if (!tensors.empty() && !views.empty()) {
    throw Error(fmt::format("{0}: {0}_views contains tensors too\nSet only {0} or only {0}_views", what));
  }
  return to_internal(views.empty() ? views_of(tensors) : views, what);
}

TensorViews views_of(const runtime::TensorMap& tensors, const std::string& what) {
  TensorViews made;
  for (const auto& [name, data] : tensors) {
    made.emplace(name, TensorView{.dtype = public_type(data.type, fmt::format("{} '{}'", what, name)),
                                  .shape = data.dims,
                                  .data = std::as_bytes(std::span(data.bytes.data(), data.bytes.size()))});
  }
  return made;
}

Tensors to_public(const runtime::TensorMap& tensors, const std::string& what) {
  Tensors made;
  for (const auto& [name, view] : views_of(tensors, what)) {
    made.emplace(name, Tensor{view.dtype, view.shape, {view.data.begin(), view.data.end()}});
  }
  return made;
}

TensorViews views_of(const Tensors& tensors) {
  TensorViews views;
  for (const auto& [name, tensor] : tensors) {
    views.emplace(name, TensorView{.dtype = tensor.dtype, .shape = tensor.shape, .data = tensor.data});
  }
  return views;
}

Tensor make_tensor(std::vector<std::int64_t> shape, const std::vector<float>& values) {
  Tensor tensor{.dtype = TensorType::f32, .shape = std::move(shape), .data = std::vector<std::byte>(values.size() * 4)};
  if (!values.empty()) std::memcpy(tensor.data.data(), values.data(), tensor.data.size());
  check(tensor, "make_tensor");
  return tensor;
}

std::vector<float> values_of(const Tensor& tensor) {
  if (tensor.dtype != TensorType::f32) {
    throw Error(fmt::format("values_of: found a tensor of type {}; the type must be f32", to_string(tensor.dtype)));
  }
  check(tensor, "values_of");
  std::vector<float> values(tensor.data.size() / sizeof(float));
  if (!values.empty()) std::memcpy(values.data(), tensor.data.data(), tensor.data.size());
  return values;
}

Tensors read_npz(const std::filesystem::path& file) {
  Tensors tensors;
  for (auto& [name, array] : io::read_npz(file)) tensors.emplace(name, to_tensor(std::move(array)));
  return tensors;
}

void write_npz(const std::filesystem::path& file, const Tensors& tensors) {
  io::write_npz(file, to_arrays(views_of(tensors), file));
}

void write_tensors(const std::filesystem::path& file, const TensorViews& tensors) {
  const io::NpzArrays arrays = to_arrays(tensors, file);
  if (is_archive(file)) {
    io::write_npz(file, arrays);
    return;
  }
  if (arrays.size() != 1) {
    std::vector<std::string> names;
    for (const auto& [name, array] : arrays) names.push_back(name);
    throw Error(
        fmt::format("{}: a .npy file contains one array, and there are {} tensors: {}\nChoose a name that ends in .npz",
                    file.string(), names.size(), fmt::join(names, ", ")));
  }
  io::write_npy(file, arrays.begin()->second);
}

}  // namespace graft::toolkit

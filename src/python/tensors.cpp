// No element is looked at: Python says what the bytes are.
#include "python/tensors.hpp"

#include <utility>

#include "graft/toolkit/error.hpp"

namespace graft::python {
namespace {

DType dtype_of(const std::string& input, const std::string& type) {
  if (const auto dtype = parse_dtype(type)) return *dtype;
  throw Error("input '" + input + "': found " + type + "; allowed are f32, f16, bf16, i8, u8, i32, i64 and bool");
}

std::span<const std::byte> bytes_of(const BytesIn& array) {
  return {reinterpret_cast<const std::byte*>(array.data()), array.size()};
}

}  // namespace

toolkit::TensorViews views_of(const ArraysIn& arrays) {
  toolkit::TensorViews views;
  for (const auto& [name, array] : arrays) {
    const auto& [type, shape, bytes] = array;
    views.emplace(name, toolkit::TensorView{.dtype = dtype_of(name, type), .shape = shape, .data = bytes_of(bytes)});
  }
  return views;
}

toolkit::Tensors tensors_of(const ArraysIn& arrays) {
  toolkit::Tensors tensors;
  for (const auto& [name, view] : views_of(arrays)) {
    tensors.emplace(name, toolkit::Tensor{.dtype = view.dtype,
                                          .shape = view.shape,
                                          .data = std::vector<std::byte>(view.data.begin(), view.data.end())});
  }
  return tensors;
}

BytesOut array_of(std::vector<std::byte> bytes) {
  auto* owned = new std::vector<std::byte>(std::move(bytes));
  const nanobind::capsule owner(owned, [](void* pointer) noexcept { delete static_cast<decltype(owned)>(pointer); });
  return BytesOut(owned->data(), {owned->size()}, owner);
}

ArraysOut arrays_of(toolkit::Tensors tensors) {
  ArraysOut arrays;
  for (auto& [name, tensor] : tensors) {
    arrays.emplace(name, std::tuple(std::string(to_string(tensor.dtype)), std::move(tensor.shape),
                                    array_of(std::move(tensor.data))));
  }
  return arrays;
}

}  // namespace graft::python

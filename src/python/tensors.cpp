// The conversion reads no element: Python passes the type and the shape of the bytes.
#include "python/tensors.hpp"

#include <memory>
#include <utility>

#include "graft/toolkit/error.hpp"

namespace graft::python {
namespace {

toolkit::TensorType type_of(const std::string& input, const std::string& name) {
  if (const auto type = toolkit::parse_tensor_type(name)) return *type;
  throw Error("input '" + input + "': found " + name + ", which is not a tensor type");
}

std::span<const std::byte> bytes_of(const BytesIn& array) {
  return {reinterpret_cast<const std::byte*>(array.data()), array.size()};
}

/// Returns an owner of the array that any thread may release.
std::shared_ptr<const void> owner_of(const BytesIn& array) {
  return {new BytesIn(array), [](const BytesIn* held) {
            const nanobind::gil_scoped_acquire acquired;
            delete held;
          }};
}

}  // namespace

toolkit::TensorViews views_of(const ArraysIn& arrays) {
  toolkit::TensorViews views;
  for (const auto& [name, array] : arrays) {
    const auto& [type, shape, bytes] = array;
    views.emplace(name,
                  toolkit::TensorView{
                      .dtype = type_of(name, type), .shape = shape, .data = bytes_of(bytes), .owner = owner_of(bytes)});
  }
  return views;
}

toolkit::Tensors copies_of(const ArraysIn& arrays) {
  toolkit::Tensors tensors;
  for (const auto& [name, view] : views_of(arrays)) {
    tensors.emplace(
        name, toolkit::Tensor{.dtype = view.dtype, .shape = view.shape, .data = {view.data.begin(), view.data.end()}});
  }
  return tensors;
}

ArraysOut arrays_of(toolkit::Tensors tensors) {
  toolkit::TensorViews views;
  for (auto& [name, tensor] : tensors) {
    const auto owner = std::make_shared<const std::vector<std::byte>>(std::move(tensor.data));
    views.emplace(name, toolkit::TensorView{
                            .dtype = tensor.dtype, .shape = std::move(tensor.shape), .data = *owner, .owner = owner});
  }
  return arrays_of(views);
}

ArraysOut arrays_of(const toolkit::TensorViews& views) {
  using Owner = std::shared_ptr<const void>;
  ArraysOut arrays;
  for (const auto& [name, view] : views) {
    const nanobind::capsule owner(new Owner(view.owner), [](void* kept) noexcept { delete static_cast<Owner*>(kept); });
    auto* data = const_cast<std::byte*>(view.data.data());
    arrays.emplace(name, std::tuple(to_string(view.dtype), view.shape, BytesOut(data, {view.data.size()}, owner)));
  }
  return arrays;
}

}  // namespace graft::python

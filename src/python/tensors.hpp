// Conversion between NumPy arrays and the toolkit's tensors. Python passes the name of the type, the shape and the
// bytes.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/map.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <cstdint>
#include <map>
#include <string>
#include <tuple>
#include <vector>

#include "graft/toolkit/tensor.hpp"

namespace graft::python {

using BytesIn =
    nanobind::ndarray<const std::uint8_t, nanobind::ndim<1>, nanobind::c_contig, nanobind::device::cpu, nanobind::ro>;
using BytesOut = nanobind::ndarray<nanobind::numpy, std::uint8_t, nanobind::ndim<1>>;

template <class Bytes>
using Arrays = std::map<std::string, std::tuple<std::string, std::vector<std::int64_t>, Bytes>>;
using ArraysIn = Arrays<BytesIn>;
using ArraysOut = Arrays<BytesOut>;

/// Returns views of the arrays, which share ownership of them. Throws Error for a type that TensorType does not have.
[[nodiscard]] toolkit::TensorViews views_of(const ArraysIn& arrays);

/// Returns copies of the arrays. Throws Error for a type that TensorType does not have.
[[nodiscard]] toolkit::Tensors copies_of(const ArraysIn& arrays);

/// Returns arrays that own the memory of the tensors.
[[nodiscard]] ArraysOut arrays_of(toolkit::Tensors tensors);

/// Returns arrays that use the memory of the views and share its ownership. Nobody else may write to this memory,
/// because the arrays are writable.
[[nodiscard]] ArraysOut arrays_of(const toolkit::TensorViews& views);

}  // namespace graft::python

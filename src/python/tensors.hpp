// NumPy's arrays as the toolkit's tensors: a type's name, a shape, and the bytes.
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

/// Views that keep the arrays. Throws Error for a type that DType does not have.
[[nodiscard]] toolkit::TensorViews views_of(const ArraysIn& arrays);

/// Copies, for what keeps them. Throws as views_of does.
[[nodiscard]] toolkit::Tensors copies_of(const ArraysIn& arrays);

/// Arrays that own what the tensors owned.
[[nodiscard]] ArraysOut arrays_of(toolkit::Tensors tensors);

/// Arrays that keep what the views show, which nobody else may write to.
[[nodiscard]] ArraysOut arrays_of(const toolkit::TensorViews& views);

}  // namespace graft::python

// Between the tensors of applications and those of models.
#pragma once

#include <string>

#include "graft/toolkit/tensor.hpp"
#include "runtime/engine.hpp"

namespace graft::toolkit {

/// Throws Error quoting `what` for a tensor whose data do not have the size that its shape says.
[[nodiscard]] runtime::TensorMap to_internal(const Tensors& tensors, const std::string& what);

/// The same without a copy.
[[nodiscard]] runtime::TensorMap to_internal(const TensorViews& tensors, const std::string& what);

/// Whether options have data, or views of some.
template <class Options>
[[nodiscard]] bool has_data(const Options& options) {
  return !options.data.empty() || !options.data_views.empty();
}

/// Of the one that is given. Throws Error where both are.
[[nodiscard]] runtime::TensorMap to_internal(const Tensors& tensors, const TensorViews& views, const std::string& what);

/// Throws Error quoting `what` for a tensor of a type that DType does not have.
[[nodiscard]] Tensors to_public(const runtime::TensorMap& tensors, const std::string& what);

/// The same without a copy.
[[nodiscard]] TensorViews views_of(const runtime::TensorMap& tensors, const std::string& what);

}  // namespace graft::toolkit

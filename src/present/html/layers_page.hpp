// The page of `graft verify --layers --report`.
#pragma once

#include <vector>

#include "present/html/verify_page.hpp"
#include "verify/localize/layers.hpp"

namespace graft::present {

[[nodiscard]] std::vector<ComparedTensor> tensors_of(const verify::LayerReport& report);

[[nodiscard]] html::Report layers_page(const onnx::Model& candidate, const verify::LayerReport& report);

}  // namespace graft::present

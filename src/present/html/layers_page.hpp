// The page of `graft verify --layers --report`.
#pragma once

#include <vector>

#include "graft/report/layers.hpp"
#include "present/html/verify_page.hpp"

namespace graft::present {

[[nodiscard]] std::vector<ComparedTensor> tensors_of(const report::LayersReport& report);

[[nodiscard]] html::Report layers_page(const onnx::Model& candidate, const report::LayersReport& report);

}  // namespace graft::present

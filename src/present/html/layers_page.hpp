// The page of `graft verify --layers --report`.
#pragma once

#include <vector>

#include "graft/toolkit/verify_layers.hpp"
#include "present/html/verify_page.hpp"

namespace graft::present {

[[nodiscard]] std::vector<ComparedTensor> tensors_of(const report::LayersReport& report);

[[nodiscard]] html::Report layers_page(const toolkit::LayersResult& result);

}  // namespace graft::present

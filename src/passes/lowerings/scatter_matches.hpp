// ScatterElements and ScatterND whose indices are computed: every place is compared with every index.
#pragma once

#include <optional>
#include <string>

#include "passes/lowerings/lowering.hpp"

namespace graft::passes {

/// The operator of a reduction: "Add" for "add"; empty for "none", and for what ONNX does not have.
[[nodiscard]] std::string computation_of(const std::string& reduction);

/// With a reduction, of real numbers.
[[nodiscard]] std::optional<Replacement> scatter_nd_by_matches(Site& site, const std::string& reduction);
[[nodiscard]] std::optional<Replacement> scatter_elements_by_matches(Site& site, const std::string& reduction);

/// Without a reduction, where there are more indices than places along the axis, which TensorRT refuses.
[[nodiscard]] std::optional<Replacement> scatter_more_than_fit(Site& site);

}  // namespace graft::passes

// ScatterElements and ScatterND with computed indices: every place is compared with every index.
#pragma once

#include <optional>
#include <string>

#include "passes/lowering/lowering.hpp"

namespace graft::passes {

/// Returns the operator of a reduction: "Add" for "add". Returns an empty string for "none", and for reductions that
/// ONNX does not have.
[[nodiscard]] std::string computation_of(const std::string& reduction);

/// Lowers a scatter with a reduction, of floating-point numbers.
[[nodiscard]] std::optional<Replacement> scatter_nd_by_matches(Site& site, const std::string& reduction);
[[nodiscard]] std::optional<Replacement> scatter_elements_by_matches(Site& site, const std::string& reduction);

/// Lowers ScatterElements without a reduction and with more indices than places along the axis, which TensorRT refuses.
[[nodiscard]] std::optional<Replacement> scatter_more_than_fit(Site& site);

}  // namespace graft::passes

// ScatterElements and ScatterND with computed indices: every place is compared with every index.
#pragma once

#include <optional>
#include <string>

#include "passes/lowering/lowering.hpp"

namespace graft::passes {

/// Returns the ONNX operator that combines two elements in a reduction: "Add" for "add", "Mul", "Max" or "Min". Returns
/// an empty string for "none" and for unknown reductions.
[[nodiscard]] std::string computation_of(const std::string& reduction);

/// Returns the replacement of a floating-point ScatterND with this reduction. Returns nothing, and stores the reason
/// with site.no(), if it cannot be lowered.
[[nodiscard]] std::optional<Replacement> scatter_nd_by_matches(Site& site, const std::string& reduction);
[[nodiscard]] std::optional<Replacement> scatter_elements_by_matches(Site& site, const std::string& reduction);

/// Returns the replacement of a ScatterElements without a reduction that has more indices than elements along the axis,
/// which TensorRT refuses. Returns nothing for any other node and, after storing the reason with site.no(), if the node
/// cannot be lowered.
[[nodiscard]] std::optional<Replacement> scatter_more_than_fit(Site& site);

}  // namespace graft::passes

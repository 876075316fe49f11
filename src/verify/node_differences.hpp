// What of a node is another in another model: operator, attributes, weights, types.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "graph/model.hpp"

namespace graft {

/// "attribute pads: [1, 1, 1, 1] in the reference, [2, 2, 0, 0] in the candidate", "weight 'w' (input 1): 3 of 432
/// elements differ ...". Empty where both nodes say the same: then the difference is in what they calculate with. Where
/// the weights are narrower in one, what the narrower type rounds is no difference.
[[nodiscard]] std::vector<std::string> node_differences(const Node& reference, const Node& candidate);

/// The same of the nodes of two parts that have as many: one, or the same operators in the same order. Nothing for
/// others.
[[nodiscard]] std::optional<std::vector<std::string>> part_differences(const std::vector<const Node*>& reference,
                                                                       const std::vector<const Node*>& candidate);

}  // namespace graft

// Subtracts sizes that a network computes from dynamic dimensions.
#pragma once

#include <cstdint>
#include <optional>

#include "graft/operator/shape.hpp"

namespace graft::tensorflow {

/// Returns a - b, or nothing if the difference depends on dynamic dimensions.
[[nodiscard]] std::optional<std::int64_t> constant_difference(const Dim& a, const Dim& b);

}  // namespace graft::tensorflow

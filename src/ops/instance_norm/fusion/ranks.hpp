// The ranks of tensors that InstanceNorm supports.
#pragma once

#include <cstdint>

namespace graft::passes::instance_norm {

inline constexpr std::int64_t least_rank = 3;
inline constexpr std::int64_t most_rank = 5;

}  // namespace graft::passes::instance_norm

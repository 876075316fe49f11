// Shapes as they are typed: NAME:1x3x8x8.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace graft::cli {

/// -1 stands for "?" or "-1", a dimension that stays unknown.
using TypedShapes = std::map<std::string, std::vector<std::int64_t>, std::less<>>;

/// NAME=1x3x8x8 is taken too. Throws Error quoting the option for what is neither, for a size below 1, and for a name
/// that comes twice.
[[nodiscard]] TypedShapes parse_shapes(const std::string& option, const std::vector<std::string>& texts,
                                       bool unknown_allowed);

}  // namespace graft::cli

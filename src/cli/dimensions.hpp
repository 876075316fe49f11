// Parses shapes of the command line: NAME:1x3x8x8.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace graft::cli {

/// The shapes by name. The size -1 stands for "?" or "-1", a dimension that stays unknown.
using TypedShapes = std::map<std::string, std::vector<std::int64_t>, std::less<>>;

/// Parses strings such as NAME:1x3x8x8 or NAME=1x3x8x8; "?" and "-1" are allowed as sizes if `unknown_allowed`. Throws
/// Error, quoting the option, for other strings, for a size below 1, and for a name that occurs twice.
[[nodiscard]] TypedShapes parse_shapes(const std::string& option, const std::vector<std::string>& texts,
                                       bool unknown_allowed);

}  // namespace graft::cli

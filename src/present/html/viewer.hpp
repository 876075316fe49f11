// The page that shows a report, as text: viewer.html, put in here when Graft is built.
#pragma once

#include <string_view>

namespace graft::report {

extern const std::string_view viewer;
/// What stands in it where the report's JSON belongs.
inline constexpr std::string_view viewer_data = "{\"schema\": \"none\"}";

}  // namespace graft::report

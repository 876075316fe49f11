// The page that shows a report: the text of viewer.html, which CMake embeds.
#pragma once

#include <string_view>

namespace graft::html {

extern const std::string_view viewer;
/// The part of `viewer` that is replaced by the JSON of a report.
inline constexpr std::string_view viewer_data = "{\"schema\": \"none\"}";

}  // namespace graft::html

// `graft build` in words.
#pragma once

#include <string>

#include "present/text/listing.hpp"
#include "toolkit/build.hpp"

namespace graft::present {

/// What was built, for what, with which plugins and why.
[[nodiscard]] Listing build_text(const toolkit::BuildReport& report, const std::string& engine);

}  // namespace graft::present

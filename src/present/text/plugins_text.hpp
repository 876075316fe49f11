// `graft plugins` in words.
#pragma once

#include <string>
#include <vector>

#include "present/text/listing.hpp"
#include "toolkit/plugins.hpp"

namespace graft::present {

/// A row for each creator, with its fields.
[[nodiscard]] Listing plugins_text(const toolkit::PluginsReport& report, const std::vector<std::string>& libraries);

/// A row for each creator, and one for each check that it did not pass; verbose: for those that were not made too.
[[nodiscard]] Listing checks_text(const toolkit::PluginsReport& report, bool verbose);

}  // namespace graft::present

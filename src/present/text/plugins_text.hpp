// The result of `graft plugins` in words.
#pragma once

#include <string>
#include <vector>

#include "graft/report/plugins.hpp"
#include "present/text/listing.hpp"

namespace graft::present {

/// Returns a row for each creator, with its fields.
[[nodiscard]] Listing plugins_text(const report::PluginsReport& report, const std::vector<std::string>& libraries);

/// Returns a row for each creator and each failed check. If `verbose`, checks that were not made also have a row.
[[nodiscard]] Listing checks_text(const report::PluginsReport& report, bool verbose);

}  // namespace graft::present

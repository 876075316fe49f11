// The date in reports.
#pragma once

#include <string>

namespace graft {

/// Returns the current time as "2026-11-22T09:30:00Z". If the environment variable SOURCE_DATE_EPOCH is set, returns
/// that time instead, so that a report has the same bytes each time. Throws Error if the variable is not a number of
/// seconds.
[[nodiscard]] std::string report_date();

}  // namespace graft

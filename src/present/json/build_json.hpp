// The result of `graft build` as JSON.
#pragma once

#include "graft/report/build.hpp"
#include "present/json/fields.hpp"

namespace graft::present {

/// Returns the fields of the report as JSON. The keys of `plugin_libraries` are sorted alphabetically, as the keys of
/// the other objects already are.
[[nodiscard]] inline Json build_json(const report::BuildReport& report) {
  Json json = json_of_report(report);
  Json& libraries = json["plugin_libraries"];
  libraries = nlohmann::json(libraries);
  return json;
}

}  // namespace graft::present

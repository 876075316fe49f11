// Writes the fields of the report, and composes the sentences.
#include "present/json/inspect_json.hpp"

#include <algorithm>
#include <string>

#include "present/json/fields.hpp"
#include "present/text/inspect_text.hpp"
#include "present/text/next_steps_text.hpp"

namespace graft::present {
namespace {

Json counts_of(const std::vector<report::NodeSupport>& nodes) {
  Json counts = Json::object();
  for (const report::Support verdict : report::all_supports) {
    counts[std::string(to_string(verdict))] = std::count_if(
        nodes.begin(), nodes.end(), [&](const report::NodeSupport& node) { return node.support == verdict; });
  }
  return counts;
}

}  // namespace

Json inspect_json(const report::InspectReport& report) {
  Json json = json_of_report(report);
  json["answered_by"] = answered_by(report);
  json["counts"] = counts_of(report.nodes);
  json["next"] = json_of_value(next_commands(report));
  return json;
}

}  // namespace graft::present

// Writes the fields of the report, with the reports of the steps as their commands print them, and composes the
// sentences.
#include "present/json/auto_json.hpp"

#include "present/json/build_json.hpp"
#include "present/json/convert_json.hpp"
#include "present/json/fields.hpp"
#include "present/text/auto_text.hpp"

namespace graft::present {

Json auto_json(const report::AutoReport& report) {
  Json json = json_of_report(report);
  for (std::size_t i = 0; i < report.steps.size(); ++i) {
    json["steps"][i]["found"] = found_text(report, report.steps[i]);
  }
  json["next"] = json_of_value(next_commands(report));
  if (report.convert) json["convert"] = convert_json(*report.convert);
  if (report.build) json["build"] = build_json(*report.build);
  return json;
}

}  // namespace graft::present

// Writes the fields of the report, and composes the sentences.
#include "present/json/convert_json.hpp"

#include "present/json/fields.hpp"
#include "present/text/convert_text.hpp"

namespace graft::present {

Json convert_json(const report::ConvertReport& report) {
  Json json = json_of_report(report);
  json["answered_by"] = check_text(report);
  if (report.values.is_tried()) json["values"] = json_of_fields(report.values);
  return json;
}

}  // namespace graft::present

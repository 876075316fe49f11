// Writes the fields of the report, and composes the sentences.
#include "present/json/convert_json.hpp"

#include "present/json/fields.hpp"
#include "present/json/value_check_json.hpp"
#include "present/text/convert_text.hpp"
#include "present/text/next_steps_text.hpp"

namespace graft::present {

Json convert_json(const report::ConvertReport& report) {
  Json json = json_of_fields(report);
  json["answered_by"] = check_text(report);
  json["values"] = to_json(report.values, verify_command(report));
  return json;
}

}  // namespace graft::present

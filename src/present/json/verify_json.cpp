// Writes the reports of comparisons output by output and tensor by tensor.
#include "present/json/verify_json.hpp"

#include "present/json/fields.hpp"

namespace graft::present {

Json verify_json(const report::VerifyReport& report) {
  Json json = {{"schema", "graft.verify"}, {"version", 1}};
  json.update(json_of_fields(report));
  return json;
}

Json layers_json(const report::LayersReport& report) {
  Json json = {{"schema", "graft.verify.layers"}, {"version", 2}};
  json.update(json_of_fields(report));
  return json;
}

}  // namespace graft::present

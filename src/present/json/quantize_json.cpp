// Writes the report of `graft quantize`.
#include "present/json/quantize_json.hpp"

#include "present/json/fields.hpp"

namespace graft::present {

Json quantize_json(const report::QuantizeReport& report) {
  Json json = {{"schema", "graft.quantize"}, {"version", 1}};
  json.update(json_of_fields(report));
  return json;
}

Json scales_json(const std::string& model, const std::string& cache, std::size_t scales) {
  return {{"schema", "graft.quantize"}, {"version", 1}, {"model", model}, {"cache", cache}, {"scales", scales}};
}

}  // namespace graft::present

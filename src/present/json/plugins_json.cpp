// Copies the JSON of the engine driver.
#include "present/json/plugins_json.hpp"

#include <optional>

#include "present/json/fields.hpp"

namespace graft::present {

Json to_json(const toolkit::PluginsReport& report, bool is_checked) {
  Json json = {{"tensorrt", json_of_fields(report.tensorrt)}, {"plugin_libraries", report.libraries}};
  if (is_checked) {
    const std::optional<bool> conforms = report.conforms();
    json["conforms"] = conforms ? Json(*conforms) : Json();
    json["checks"] = {{"made", report.checks.made()}, {"all", report.checks.all()}, {"failed", report.checks.failed}};
  }
  return json;
}

}  // namespace graft::present

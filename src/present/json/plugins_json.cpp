// As the driver tells it.
#include "present/json/plugins_json.hpp"

namespace graft::present {

Json to_json(const toolkit::PluginsReport& report, bool is_checked) {
  Json json = {{"tensorrt", report.tensorrt}, {"plugin_libraries", report.libraries}};
  if (is_checked) json["conforms"] = report.conforms;
  return json;
}

}  // namespace graft::present

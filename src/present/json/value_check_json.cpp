// Both commands write the same object.
#include "present/json/value_check_json.hpp"

#include "present/json/fields.hpp"

namespace graft::present {

Json to_json(const toolkit::ValueCheck& check, const std::string& verify) {
  if (!check.is_tried()) return {};
  Json json = json_of_fields(check);
  json["command"] = verify;
  return json;
}

}  // namespace graft::present

// Writes each finding with its text and its facts.
#include "present/json/doctor_json.hpp"

namespace graft::present {

Json to_json(const std::vector<Finding>& findings) {
  Json listed = Json::array();
  for (const Finding& finding : findings) {
    listed.push_back({{"name", finding.name},
                      {"found", finding.found},
                      {"needed", finding.needed},
                      {"text", finding.text},
                      {"remedy", finding.remedy},
                      {"facts", finding.facts}});
  }
  return {{"version", GRAFT_VERSION}, {"complete", is_complete(findings)}, {"findings", listed}};
}

}  // namespace graft::present

// Both commands write the same object.
#include "present/json/value_check_json.hpp"

#include "present/text/verify_text.hpp"

namespace graft::present {

Json to_json(const toolkit::ValueCheck& check, const std::string& verify) {
  if (!check.report && check.failure.empty()) return {};
  return {{"verdict", check.report ? check.report->verdict_text() : "not compared"},
          {"failure", check.failure},
          {"ran_in", check.report ? check.report->ran_in : ""},
          {"left_out", check.report ? check.report->left_out : std::vector<std::string>{}},
          {"runs", check.report ? check.report->runs : 0},
          {"command", verify}};
}

}  // namespace graft::present

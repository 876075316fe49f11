// What is written, and more.
#include "present/json/cut_json.hpp"

#include "toolkit/cut_json.hpp"

namespace graft::present {
namespace {

Json verdict_of(const toolkit::CutResult& result) {
  if (!result.verified) return nullptr;
  switch (result.verified->verdict) {
    case toolkit::Verdict::same: return "same";
    case toolkit::Verdict::different: return "different";
    case toolkit::Verdict::disputed: return "disputed";
    case toolkit::Verdict::nothing_compared: break;
  }
  return "nothing_compared";
}

}  // namespace

Json to_json(const toolkit::CutResult& result, const toolkit::CutFiles& files) {
  Json json = toolkit::json_of_cut(result, files);
  json["file"] = files.network.string();
  json["verified"] = verdict_of(result);
  json["not_verified"] = result.not_verified;
  return json;
}

}  // namespace graft::present

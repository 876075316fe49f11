// Extends the JSON that is written to the file of both halves.
#include "present/json/cut_json.hpp"

#include "toolkit/cut_json.hpp"

namespace graft::present {
namespace {

Json verdict_of(const toolkit::CutResult& result) {
  if (!result.verified) return nullptr;
  const toolkit::Verdict verdict = result.verified->verdict();
  return verdict == toolkit::Verdict::nothing_compared ? "nothing_compared" : to_string(verdict);
}

}  // namespace

Json to_json(const toolkit::CutResult& result, const toolkit::CutFiles& files) {
  Json json = toolkit::json_of_cut(result, files);
  json["file"] = files.network.string();
  json["verified"] = verdict_of(result);
  json["not_verified"] = result.not_verified;
  json["host_engine"] = result.host_engine;
  json["host_refused"] = result.host_refused;
  return json;
}

}  // namespace graft::present

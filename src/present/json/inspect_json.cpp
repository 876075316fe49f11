// Writes the calls of TensorRT first, then the members that every inspection has.
#include "present/json/inspect_json.hpp"

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include "present/json/fields.hpp"
#include "present/json/model_json.hpp"
#include "present/json/verdicts.hpp"
#include "present/text/inspect_text.hpp"
#include "present/text/next_steps_text.hpp"

namespace graft::present {
namespace {

Json to_json(const std::vector<report::FailingPart>& parts) {
  if (parts.empty()) return {};
  Json reduced = json_of_fields(parts.front());
  reduced["others"] = json_of_value(std::vector(parts.begin() + 1, parts.end()));
  return reduced;
}

Json to_json(const std::optional<report::ProbeSummary>& probe) {
  Json json = json_of_fields(probe.value_or(report::ProbeSummary()));
  if (!probe) json["tensorrt"] = json["trials"] = nullptr;
  json["reduced"] = probe ? to_json(probe->reduced) : Json();
  return json;
}

Json counts_of(const std::vector<report::NodeSupport>& nodes) {
  Json counts = Json::object();
  for (const report::Support verdict : report::all_supports) {
    counts[std::string(to_string(verdict))] = std::count_if(
        nodes.begin(), nodes.end(), [&](const report::NodeSupport& node) { return node.support == verdict; });
  }
  return counts;
}

}  // namespace

Json to_json(const toolkit::Inspection& inspection) {
  const std::optional<bool> runs = inspection.runs();
  Json json = {{"schema", "graft.inspect"},
               {"version", 2},
               {"model", inspection.file.string()},
               {"converted", inspection.is_converted},
               {"release", inspection.release ? Json(inspect::name_of(*inspection.release)) : Json()},
               {"opset", inspection.model.graph().opset()},
               {"runs", runs ? Json(*runs) : Json()}};
  json.update(to_json(inspection.probe));
  json["answered_by"] = answered_by(inspection);
  json.update(json_of_io(inspection.model));
  json.update(to_json(inspection.origin));
  Json next = Json::array();
  for (const NextCommand& command : next_commands(inspection)) {
    next.push_back({{"command", command.command}, {"why", command.why}});
  }
  json.update({{"counts", counts_of(inspection.nodes)},
               {"warnings", inspection.prospect.warnings},
               {"next", next},
               {"nodes", json_of_value(inspection.nodes)}});
  return json;
}

}  // namespace graft::present

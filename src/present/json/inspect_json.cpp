// Writes the calls of TensorRT first, then the members that every inspection has.
#include "present/json/inspect_json.hpp"

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include "present/json/model_json.hpp"
#include "present/json/verdicts.hpp"
#include "present/text/inspect_text.hpp"
#include "present/text/next_steps_text.hpp"

namespace graft::present {
namespace {

using inspect::SmallestPart;

Json to_json(const SmallestPart& part) {
  return {{"file", part.file},
          {"nodes", part.node_count},
          {"node", part.failing_node().name},
          {"inside", part.inside ? Json(part.nodes.front().name) : Json()},
          {"alike", names_of(part.alike)},
          {"verdict", inspect::name_of(inspect::verdict_of(part.outcome))},
          {"shapes", part.shapes}};
}

Json to_json(const std::vector<SmallestPart>& parts) {
  if (parts.empty()) return {};
  Json reduced = to_json(parts.front());
  reduced["others"] = Json::array();
  for (std::size_t i = 1; i < parts.size(); ++i) reduced["others"].push_back(to_json(parts[i]));
  return reduced;
}

Json to_json(const std::optional<inspect::ProbeAnswer>& answer) {
  if (!answer) {
    return {{"truth", "rule"},    {"tensorrt", nullptr},     {"trials", nullptr},
            {"reduced", nullptr}, {"unanswered", 0},         {"pieces", 0},
            {"built", false},     {"shapes", Json::array()}, {"failing_shapes", Json::array()}};
  }
  return {{"truth", inspect::name_of(answer->level)},
          {"tensorrt",
           {{"flavor", answer->tensorrt.flavor},
            {"module", answer->tensorrt.module},
            {"version", answer->tensorrt.version}}},
          {"trials",
           {{"parses", answer->trials.parses},
            {"builds", answer->trials.builds},
            {"processes", answer->trials.processes},
            {"seconds", answer->trials.seconds}}},
          {"reduced", to_json(answer->reduced)},
          {"unanswered", answer->unanswered},
          {"pieces", answer->pieces},
          {"built", answer->is_built},
          {"shapes", answer->shapes},
          {"failing_shapes", answer->failing_shapes}};
}

Json counts_of(const std::vector<inspect::NodeVerdict>& nodes) {
  Json counts = Json::object();
  for (const inspect::Verdict verdict : inspect::all_verdicts) {
    counts[std::string(inspect::name_of(verdict))] = std::count_if(
        nodes.begin(), nodes.end(), [&](const inspect::NodeVerdict& node) { return node.verdict == verdict; });
  }
  return counts;
}

Json to_json(const std::vector<inspect::NodeVerdict>& nodes) {
  Json listed = Json::array();
  for (const inspect::NodeVerdict& node : nodes) {
    listed.push_back({{"node", node.node.name},
                      {"operator", node.op},
                      {"verdict", inspect::name_of(node.verdict)},
                      {"reason", node.reason},
                      {"advice", node.advice},
                      {"truth", node.truth},
                      {"tensorrt", node.tensorrt},
                      {"plugin", node.plugin},
                      {"cause", node.cause},
                      {"as", node.as ? node.as->name : ""}});
  }
  return listed;
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
               {"nodes", to_json(inspection.nodes)}});
  return json;
}

}  // namespace graft::present

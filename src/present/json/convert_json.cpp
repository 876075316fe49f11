// Nodes are written as descriptions: "node 'conv1' (Conv)".
#include "present/json/convert_json.hpp"

#include "passes/report.hpp"
#include "present/json/fields.hpp"
#include "present/json/value_check_json.hpp"
#include "present/json/verdicts.hpp"
#include "present/text/convert_text.hpp"
#include "present/text/next_steps_text.hpp"
#include "toolkit/ports.hpp"

namespace graft::present {
namespace {

Json json_of(const std::vector<report::NodeSupport>& nodes, bool (*is_that)(report::Support)) {
  Json listed = Json::array();
  for (const report::NodeSupport& node : nodes) {
    if (is_that(node.support)) listed.push_back(json_of_fields(node));
  }
  return listed;
}

}  // namespace

Json to_json(const toolkit::Conversion& conversion) {
  const toolkit::Conversion::Seconds& seconds = conversion.seconds;
  Json json = {{"model", conversion.file.string()},
               {"output", conversion.output.string()},
               {"nodes_before", conversion.nodes_before.all()},
               {"nodes_after", conversion.nodes_after.all()},
               {"weight_bytes", conversion.weight_bytes},
               {"transpositions", conversion.transpositions}};
  json["external_data"] = json_of_data_file(conversion.data_file);
  json["nodes_without_function"] = conversion.nodes_without_function.value_or(0);
  json["origin"] = json_of_value(conversion.origin.if_imported());
  json["notes"] = conversion.origin.notes;
  const onnx::Graph& graph = conversion.model.graph();
  json["inputs"] = json_of_value(toolkit::model_ports(graph.inputs()));
  json["outputs"] = json_of_value(toolkit::model_ports(graph.outputs()));
  json["seconds"] = {{"read", seconds.read},
                     {"rewrite", seconds.rewrite},
                     {"prove", seconds.prove},
                     {"compare", seconds.compare},
                     {"write", seconds.write}};
  json.update(json_of_fields(conversion.report));
  json["warnings"] = passes::all_warnings(conversion.report);
  const std::optional<bool> runs = conversion.runs();
  json.update({{"runs", runs ? Json(*runs) : Json()},
               {"built", conversion.check && conversion.check->built},
               {"shapes", conversion.check ? conversion.check->shapes : std::vector<std::string>()},
               {"answered_by", check_text(conversion)},
               {"values", to_json(conversion.values, verify_command(conversion))},
               {"values_not_compared", conversion.values_not_compared},
               {"unsupported_before", json_of(conversion.failed_before, inspect::is_bad)},
               {"unsupported", json_of(conversion.nodes, inspect::is_bad)},
               {"unknown", json_of(conversion.nodes, inspect::is_open)}});
  return json;
}

}  // namespace graft::present

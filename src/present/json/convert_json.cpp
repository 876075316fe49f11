// Nodes are written as descriptions: "node 'conv1' (Conv)".
#include "present/json/convert_json.hpp"

#include "onnx/node_ref.hpp"
#include "present/json/model_json.hpp"
#include "present/json/value_check_json.hpp"
#include "present/json/verdicts.hpp"
#include "present/text/convert_text.hpp"
#include "present/text/next_steps_text.hpp"

namespace graft::present {
namespace {

Json to_json(const std::vector<passes::Rewrite>& rewrites) {
  Json list = Json::array();
  for (const passes::Rewrite& rewrite : rewrites) {
    list.push_back({{"pass", rewrite.pass},
                    {"nodes", replaced_texts(rewrite)},
                    {"replacement", rewrite.replacement},
                    {"reason", rewrite.reason},
                    {"proof", rewrite.proof},
                    {"proof_kind", to_string(rewrite.proof_kind)}});
  }
  return list;
}

Json to_json(const passes::ConvertReport& report) {
  Json passes = Json::array();
  for (const passes::PassSummary& pass : report.passes) {
    passes.push_back({{"pass", pass.pass}, {"why", pass.why}, {"rewrites", pass.rewrites}, {"seconds", pass.seconds}});
  }
  Json near_misses = Json::array();
  for (const passes::NearMissNote& near : report.near_misses) {
    near_misses.push_back({{"pass", near.pass},
                           {"pattern", near.pattern},
                           {"node", onnx::describe(near.node)},
                           {"matched_nodes", near.matched_nodes},
                           {"pattern_nodes", near.pattern_nodes},
                           {"reason", near.reason}});
  }
  Json choices = Json::array();
  for (const passes::OperatorChoice& choice : report.choices) {
    choices.push_back({{"node", onnx::describe(choice.node)},
                       {"operator", choice.op},
                       {"kind", to_string(choice.kind)},
                       {"reason", choice.reason}});
  }
  Json rules = Json::array();
  for (const passes::RuleOutcome& rule : report.rules) {
    rules.push_back({{"place", rule.place},
                     {"rule", rule.rule},
                     {"reason", rule.reason},
                     {"matched", rule.matched},
                     {"applied", rule.applied},
                     {"failed", rule.failed()},
                     {"notes", rule.notes}});
  }
  return {{"passes", passes},
          {"rules", rules},
          {"rewrites", to_json(report.rewrites)},
          {"undone", to_json(report.rejected)},
          {"near_misses", near_misses},
          {"choices", choices},
          {"warnings", all_warnings(report)},
          {"proofs_run", report.proofs_run},
          {"spot_checks", report.spot_checks},
          {"proofs_alike", report.proofs_alike},
          {"proofs_reused", report.proofs_reused}};
}

Json json_of(const std::vector<report::NodeSupport>& nodes, bool (*is_that)(report::Support)) {
  Json listed = Json::array();
  for (const report::NodeSupport& node : nodes) {
    if (!is_that(node.support)) continue;
    listed.push_back({{"node", node.node.name},
                      {"operator", node.op},
                      {"verdict", to_string(node.support)},
                      {"reason", node.reason},
                      {"advice", node.advice}});
  }
  return listed;
}

}  // namespace

Json to_json(const toolkit::Conversion& conversion) {
  const toolkit::Conversion::Seconds& seconds = conversion.seconds;
  Json json = {{"model", conversion.file.string()},       {"output", conversion.output.string()},
               {"nodes_before", conversion.nodes_before}, {"nodes_after", conversion.nodes_after},
               {"weight_bytes", conversion.weight_bytes}, {"transpositions", conversion.transpositions}};
  json["external_data"] = json_of_data_file(conversion.data_file);
  json["nodes_without_function"] = conversion.nodes_without_function.value_or(0);
  json.update(to_json(conversion.origin));
  json.update(json_of_io(conversion.model));
  json["seconds"] = {{"read", seconds.read},
                     {"rewrite", seconds.rewrite},
                     {"prove", seconds.prove},
                     {"compare", seconds.compare},
                     {"write", seconds.write}};
  json.update(to_json(conversion.report));
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

// Writes the nodes, tensors and outputs of quantized models, and the trials of the search.
#include "present/json/quantize_json.hpp"

#include <utility>
#include <vector>

#include "present/html/quantize_int8_page.hpp"
#include "present/json/value_check_json.hpp"
#include "present/text/quantize_text.hpp"

namespace graft::present {
namespace {

Json to_json(const verify::OutputFigures& output) {
  Json json = {{"name", output.name}, {"elements", output.elements}, {"incomparable", output.incomparable}};
  if (!output.is_real) {
    json["differing"] = output.differing;
    return json;
  }
  json["snr_db"] = number(output.snr_db);
  json["largest_error"] = number(output.largest_error);
  json["not_finite"] = output.not_finite;
  json["rows"] = output.rows;
  json["same_top"] = output.same_top;
  return json;
}

Json to_json(const std::vector<verify::OutputFigures>& outputs) {
  Json list = Json::array();
  for (const verify::OutputFigures& output : outputs) list.push_back(to_json(output));
  return list;
}

Json to_json(const quant::ChosenNode& node, verify::Precision precision) {
  Json json = {{"node", node.node.node.name},
               {"operator", node.node.node.op},
               {"output", node.node.node.id},
               {"type", type_name(node.node, precision)},
               {"why", node.why ? Json(to_string(*node.why)) : Json()},
               {"reason", explanation(node)}};
  if (node.has_figures) {
    json["lowest"] = number(node.range.lowest);
    json["highest"] = number(node.range.highest);
    json["overflow"] = node.rounding.overflow;
    json["underflow"] = node.rounding.underflow;
    json["subnormal"] = node.rounding.subnormal;
    json["rounding_snr_db"] = number(node.rounding.snr_db);
  }
  return json;
}

Json json_of_nodes(const quant::ChosenInt8& chosen) {
  Json nodes = Json::array();
  for (const quant::Int8Node& node : chosen.plan.nodes) {
    nodes.push_back({{"node", node.node.name},
                     {"operator", node.node.op},
                     {"output", node.node.id},
                     {"type", type_name(chosen, node)},
                     {"why", node.kind != quant::Int8Kind::kept ? Json() : Json(node.by_form ? "form" : "kept")},
                     {"reason", explanation(chosen, node)}});
  }
  return nodes;
}

Json json_of_tensors(const quant::ChosenInt8& chosen) {
  Json tensors = Json::array();
  for (const quant::Int8Tensor& tensor : chosen.tensors) {
    Json json = {{"name", tensor.name},
                 {"group", tensor.group},
                 {"scale", number(tensor.scale)},
                 {"threshold", number(tensor.threshold)}};
    if (tensor.found) {
      json["lowest"] = number(tensor.found->figures().lowest);
      json["highest"] = number(tensor.found->figures().highest);
      json["saturated"] = number(tensor.saturated);
      json["rounding_snr_db"] = number(tensor.snr_db);
    }
    tensors.push_back(std::move(json));
  }
  return tensors;
}

Json json_of_search(const quant::ChosenInt8& chosen) {
  Json sensitivities = Json::array();
  for (const quant::Sensitivity& layer : chosen.sensitivities) {
    sensitivities.push_back({{"node", layer.node.name}, {"output", layer.node.id}, {"snr_db", number(layer.snr_db)}});
  }
  Json trials = Json::array();
  for (const quant::Int8Trial& trial : chosen.trials) {
    trials.push_back({{"kept", trial.kept},
                      {"snr_db", number(trial.snr_db)},
                      {"metric", number(trial.metric)},
                      {"bytes_moved", trial.cost.bytes_moved},
                      {"int8_multiply_adds", trial.cost.int8_multiply_adds},
                      {"f32_multiply_adds", trial.cost.f32_multiply_adds}});
  }
  return {{"sensitivities", sensitivities}, {"trials", trials}};
}

}  // namespace

Json types_json(const toolkit::TypesReport& report, const QuantizedFiles& files, verify::Precision precision,
                bool has_data, const std::string& verify) {
  const quant::ChosenTypes& chosen = report.chosen;
  Json nodes = Json::array();
  for (const quant::ChosenNode& node : chosen.nodes) nodes.push_back(to_json(node, precision));
  Json adjusted = Json::array();
  for (const quant::AdjustedConstant& constant : chosen.typed.adjusted) {
    adjusted.push_back({{"name", constant.name}, {"change", constant.change}});
  }
  return {{"schema", "graft.quantize"},
          {"version", 1},
          {"model", files.model},
          {"output", files.output},
          {"external_data", json_of_data_file(files.data_file)},
          {"precision", to_string(precision)},
          {"data", has_data ? "given" : "made up"},
          {"inputs", chosen.inputs},
          {"runs", chosen.runs},
          {"limit_db", chosen.limit_db},
          {"met", report.met()},
          {"check", to_json(report.check, verify)},
          {"trials", chosen.trials},
          {"casts", chosen.typed.casts},
          {"weight_bytes", report.weights.after},
          {"weight_bytes_before", report.weights.before},
          {"nodes", nodes},
          {"adjusted_constants", adjusted},
          {"notes", chosen.notes},
          {"outputs", to_json(chosen.outputs)},
          {"plain_outputs", to_json(chosen.plain)}};
}

Json int8_json(const toolkit::Int8Report& report, const QuantizedFiles& files, const quant::Int8Options& options,
               const std::string& verify) {
  const quant::ChosenInt8& chosen = report.chosen;
  Json json = {{"schema", "graft.quantize"},
               {"version", 1},
               {"model", files.model},
               {"output", files.output},
               {"external_data", json_of_data_file(files.data_file)},
               {"precision", to_string(chosen.plan.type)},
               {"method", options.cache ? "cache" : to_string(options.thresholds.method)},
               {"samples", chosen.samples},
               {"judged", chosen.judged},
               {"met", report.met()},
               {"check", to_json(report.check, verify)},
               {"metric_f32", number(chosen.metric_f32)},
               {"metric_int8", number(chosen.metric_int8)},
               {"weight_bytes", report.weights.after},
               {"weight_bytes_before", report.weights.before},
               {"nodes", json_of_nodes(chosen)},
               {"tensors", json_of_tensors(chosen)},
               {"notes", chosen.notes},
               {"outputs", to_json(chosen.outputs)},
               {"plain_outputs", to_json(chosen.plain)}};
  json["improvements"] = Json::object();
  for (const AppliedImprovement& each : applied_improvements(chosen)) json["improvements"][each.name] = each.count;
  json.update(json_of_search(chosen));
  return json;
}

Json scales_json(const std::string& model, const std::string& cache, std::size_t scales) {
  return {{"schema", "graft.quantize"}, {"version", 1}, {"model", model}, {"cache", cache}, {"scales", scales}};
}

}  // namespace graft::present

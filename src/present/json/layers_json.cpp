// Writes a comparison tensor by tensor.
#include "present/json/layers_json.hpp"

#include <utility>
#include <vector>

#include "present/json/fields.hpp"

namespace graft::present {
namespace {

constexpr std::string_view schema = "graft.verify.layers";
constexpr int schema_version = 2;

Json to_json(const report::TensorRange& range) {
  return {{"lowest", number(range.lowest)},
          {"highest", number(range.highest)},
          {"nan", range.nan},
          {"infinite", range.infinite},
          {"zeros", range.zeros}};
}

Json to_json(const report::RoundingEffect& effect) {
  return {{"overflow", effect.overflow},
          {"saturated", effect.saturated},
          {"underflow", effect.underflow},
          {"subnormal", effect.subnormal},
          {"snr_db", number(effect.snr_db)}};
}

Json to_json(const report::ComparedLayer& layer) {
  Json histogram = Json::object();
  for (std::size_t i = 0; i < layer.error.histogram.counts.size(); ++i) {
    histogram[std::string(report::ErrorHistogram::names.at(i))] = layer.error.histogram.counts.at(i);
  }
  Json json = {{"reference", layer.reference.name},
               {"candidate", layer.candidate.name},
               {"matched_by", to_string(layer.matched_by)},
               {"op", layer.op},
               {"reference_node", layer.reference_node.name},
               {"candidate_node", layer.candidate_node.name},
               {"reference_nodes", names_of(layer.reference_nodes)},
               {"candidate_nodes", names_of(layer.candidate_nodes)},
               {"is_output", layer.is_output},
               {"reference_type", layer.reference.type},
               {"candidate_type", layer.candidate.type},
               {"equal", layer.verdict() == report::Verdict::same},
               {"compared", layer.compared},
               {"failed_runs", layer.failed_runs},
               {"worst_run", layer.worst_run},
               {"tolerance", json_of_fields(layer.tolerance)}};
  json.update(json_of_fields(layer.difference));
  json["noise_floor"] = json_of_value(layer.floor);
  json.update({{"snr_db", number(layer.error.snr_db)},
               {"root_mean_square_error", number(layer.error.root_mean_square)},
               {"error_histogram", std::move(histogram)},
               {"reference_range", to_json(layer.reference_range)},
               {"candidate_range", to_json(layer.candidate_range)},
               {"layout", layer.layout ? Json(to_string(layer.layout->kind)) : Json()},
               {"diagnosis", layer.diagnosis},
               {"not_compared", layer.not_compared},
               {"rounding", layer.rounding ? to_json(*layer.rounding) : Json()},
               {"snr_lost_db", number(layer.snr_lost_db)},
               {"local", json_of_value(layer.local)}});
  return json;
}

Json to_json(const report::LayersReport& report) {
  Json constants = Json::array();
  for (const report::LargeConstant& constant : report.large_constants) {
    constants.push_back({{"name", constant.name},
                         {"node", constant.node.name},
                         {"largest", number(constant.largest)},
                         {"overflow", constant.overflow},
                         {"elements", constant.elements}});
  }
  Json layers = Json::array();
  for (const report::ComparedLayer& layer : report.layers) layers.push_back(to_json(layer));
  Json failure;
  if (report.failure) {
    failure = {{"node", report.failure->node ? report.failure->node->name : ""},
               {"nodes", names_of(report.failure->nodes)},
               {"message", report.failure->message}};
  }
  Json first;
  if (report.first) {
    const report::ComparedLayer& layer = report.layers[report.first->layer];
    first = {{"layer", report.first->layer},
             {"reference", layer.reference.name},
             {"candidate", layer.candidate.name},
             {"op", layer.op},
             {"reference_node", layer.reference_node.name},
             {"candidate_node", layer.candidate_node.name},
             {"candidate_nodes", names_of(layer.candidate_nodes)},
             {"layout", report.first->order ? Json(to_string(*report.first->order)) : Json()},
             {"why", report.first->why},
             {"differences", report.first->differences ? Json(*report.first->differences) : Json()}};
  }
  return {{"schema", schema},
          {"version", schema_version},
          {"equal", report.verdict() == report::Verdict::same},
          {"nothing_compared", report.nothing_compared()},
          {"runs", report.runs},
          {"inputs", report.inputs},
          {"problems", report.problems},
          {"dispute", json_of_value(report.dispute)},
          {"ran_in", report.ran_in},
          {"left_out", report.left_out},
          {"unreached", report.unreached},
          {"reference_tensors", report.reference_tensors},
          {"candidate_tensors", report.candidate_tensors},
          {"first_divergence", std::move(first)},
          {"nan_begins", report.nan_begins ? Json(report.layers[*report.nan_begins].candidate.name) : Json()},
          {"weakest", report.weakest ? Json(report.layers[*report.weakest].candidate.name) : Json()},
          {"failure", std::move(failure)},
          {"large_constants", std::move(constants)},
          {"layers", std::move(layers)}};
}

}  // namespace

Json layers_json(const report::LayersReport& report, const std::string& emulated,
                 const std::optional<toolkit::ReducedFiles>& reduced, const std::string& command) {
  Json json = to_json(report);
  json["reference"] = report.reference_file;
  json["candidate"] = report.candidate_file;
  json["ranges"] = json_of_value(report.ranges);
  json["large_integers"] = report.large_integers;
  json["why_sizes"] = report.why_sizes;
  json["without_own_kernels"] = report.without_own_kernels;
  json["reduced"] = nullptr;
  json["emulated"] = emulated.empty() ? Json() : Json(emulated);
  if (reduced) {
    json["reduced"] = {{"candidate", reduced->candidate},
                       {"reference", reduced->reference},
                       {"inputs", reduced->inputs},
                       {"command", command}};
  }
  return json;
}

}  // namespace graft::present

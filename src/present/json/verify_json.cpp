// Writes a comparison output by output, and the members that it shares with the comparison of all tensors.
#include "present/json/verify_json.hpp"

namespace graft::present {
namespace {

Json to_json(const verify::OutputReport& output) {
  const verify::Difference& worst = output.worst;
  return {{"reference_name", output.reference_name},
          {"candidate_name", output.candidate_name},
          {"reference_type", output.reference_type},
          {"candidate_type", output.candidate_type},
          {"equal", output.verdict() == report::Verdict::same},
          {"verdict", verdict_cell(output.verdict()).text},
          {"failed_runs", output.failed_runs},
          {"worst_run", output.worst_run},
          {"tolerance", tolerance_json(output.tolerance, output.why_tolerance)},
          {"elements", worst.count},
          {"compared", output.compared},
          {"not_compared", output.not_compared},
          {"mismatched", worst.mismatched},
          {"within_noise", worst.within_noise},
          {"max_absolute", number(worst.worst_absolute())},
          {"max_absolute_at", worst.max_absolute_at},
          {"max_relative", number(worst.worst_relative())},
          {"max_relative_at", worst.max_relative_at},
          {"excess", number(worst.excess)},
          {"cosine", worst.cosine ? number(*worst.cosine) : Json()},
          {"snr_db", number(output.figures.snr_db)},
          {"largest_error", number(output.figures.largest_error)},
          {"rows", output.figures.rows},
          {"same_top", output.figures.same_top},
          {"first_index", worst.first_index},
          {"incomparable", worst.incomparable},
          {"selection", present::to_json(worst.selection)},
          {"noise_floor", present::to_json(output.floor)},
          {"note", output.note}};
}

}  // namespace

Json to_json(const std::optional<verify::NoiseFloor>& floor) {
  if (!floor) return {};
  return {{"largest", number(floor->largest())},         {"share_of_largest", number(floor->share())},
          {"factor", verify::NoiseFloor::factor},        {"runs", floor->runs()},
          {"other_dimensions", floor->has_other_dims()}, {"unlimited", floor->has_unlimited()},
          {"says_little", floor->says_little()}};
}

Json to_json(const std::optional<verify::SelectionDifference>& selection) {
  if (!selection) return {};
  return {{"axis", selection->axis},
          {"lowest", selection->lowest},
          {"highest", selection->highest},
          {"without_partner", selection->without_partner},
          {"without_partner_between_draws", selection->between_draws}};
}

Json to_json(const std::optional<verify::Dispute>& dispute) {
  if (!dispute) return {};
  return {{"model", dispute->model},
          {"first_engine", dispute->first},
          {"second_engine", dispute->second},
          {"output", dispute->output},
          {"node", dispute->node ? Json(dispute->node->name) : Json()},
          {"operator", dispute->node ? Json(dispute->node->op) : Json()},
          {"tensor", dispute->tensor},
          {"difference", dispute->difference}};
}

Json tolerance_json(const verify::Tolerance& tolerance, const std::string& why) {
  return {{"relative", tolerance.relative},
          {"absolute", tolerance.absolute},
          {"of_largest", tolerance.of_largest},
          {"by_slice", tolerance.by_slice},
          {"snr_db", number(tolerance.snr_db)},
          {"least_snr_db", number(tolerance.least_snr_db)},
          {"why", why}};
}

Json ranges_json(const verify::InputRanges& ranges) {
  Json json = Json::object();
  for (const auto& [name, range] : ranges) {
    json[name] = {{"lowest", range.lowest}, {"highest", range.highest}, {"why", range.why}};
  }
  return json;
}

Json verify_json(const toolkit::OutputComparison& compared, const VerifiedFiles& files) {
  const verify::VerifyReport& report = compared.report;
  Json outputs = Json::array();
  for (const verify::OutputReport& output : report.outputs) outputs.push_back(to_json(output));
  return {{"schema", "graft.verify"},
          {"version", 1},
          {"equal", report.verdict() == report::Verdict::same},
          {"verdict", result_text(report.verdict())},
          {"reference", files.reference},
          {"candidate", files.candidate},
          {"runs", report.runs},
          {"inputs", report.inputs},
          {"ranges", ranges_json(compared.ranges)},
          {"large_integers", report.large_integers},
          {"why_sizes", report.why_sizes},
          {"problems", report.problems},
          {"dispute", to_json(report.dispute)},
          {"ran_in", report.ran_in},
          {"left_out", report.left_out},
          {"unreached", report.unreached},
          {"without_own_kernels", compared.without_own_kernels},
          {"outputs", outputs}};
}

}  // namespace graft::present

// Writes the verdict with the engine that computed it, and the outputs that differ.
#include "present/text/value_check_text.hpp"

#include <fmt/format.h>

#include "core/comparison_text.hpp"
#include "present/text/model_text.hpp"
#include "present/text/verify_text.hpp"

namespace graft::present {
namespace {

/// Returns a clause with the required signal-to-noise ratio, "; each output needs 20 dB", or an empty string if the
/// tolerance is not a signal-to-noise ratio or the verdict already contains it.
std::string allowed_by(const report::ValueCheck& check) {
  const report::VerifyReport& report = *check.report;
  if (models_verdict_text(report) != verdict_text(report, report.verdict())) return "";
  for (const report::ComparedOutput& output : report.outputs) {
    if (output.tolerance.snr_db) return fmt::format("; each output needs {:g} dB", *output.tolerance.snr_db);
  }
  return "";
}

}  // namespace

std::string missed_check_text(const report::ValueCheck& check, std::string_view reference) {
  if (!check.failure.empty())
    return fmt::format("the model could not be compared with {}: {}", reference, check.failure);
  if (check.report->dispute) {
    return fmt::format(
        "no verdict on the written model: {}\n--engine openvino and --engine onnxruntime show the result "
        "of each engine",
        check.report->dispute->text());
  }
  std::string text = check.report->verdict() == report::Verdict::nothing_compared
                         ? fmt::format("not every output of the written model was compared with that of {}", reference)
                         : fmt::format("the written model and {} are {}", reference, check.report->verdict_text());
  for (const report::ComparedOutput& output : check.report->outputs) {
    if (output.verdict() == report::Verdict::same) continue;
    text += '\n';
    text += output.verdict() == report::Verdict::nothing_compared
                ? report::nothing_compared_text(output)
                : fmt::format("'{}': {}", output.reference.name, report::difference_text(output.worst));
  }
  for (const std::string& problem : check.report->problems) text += "\n" + problem;
  return text;
}

Listing check_text(const report::ValueCheck& check, const std::string& verify) {
  Listing text;
  if (!check.report) return text;
  text.add("");
  text.add({"Check: ",
            {models_verdict_text(*check.report), verdict_cell(check.report->verdict()).color},
            fmt::format(", {}, computed by {}{}", count_text(check.report->runs, "run"), check.report->ran_in,
                        allowed_by(check))});
  for (const std::string& line : check.report->left_out) text.add(line, Color::caution);
  for (const std::string& line : definition_lines(*check.report)) text.add(line, Color::caution);
  if (!verify.empty()) text.add(fmt::format("next  {}", verify));
  return text;
}

}  // namespace graft::present

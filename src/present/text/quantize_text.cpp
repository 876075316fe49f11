// Writes the nodes, tensors and outputs of a quantized model.
#include "present/text/quantize_text.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <optional>
#include <string>
#include <utility>

#include "present/text/value_check_text.hpp"
#include "present/text/verify_text.hpp"

namespace graft::present {
namespace {

using report::NodeRole;
using report::QuantizedNode;
using report::QuantizedTensor;
using report::QuantizeReport;

std::string types_summary(const QuantizeReport& report) {
  const auto before = [&](std::string_view type) {
    return static_cast<std::size_t>(std::ranges::count_if(
        report.nodes, [&](const QuantizedNode& node) { return node.role == NodeRole::none && node.type == type; }));
  };
  const std::string_view precision = to_string(report.precision);
  const std::size_t already = before(precision);
  std::string others;
  for (const char* type : {"f16", "f64", "bf16"}) {
    const std::size_t nodes = before(type);
    if (type != precision && nodes != 0) others += fmt::format(", {} in {} as before", nodes, type);
  }
  return fmt::format("{} in {}{}, {} kept in f32{}, {}, {} of weights ({} before)",
                     count_text(report.count(NodeRole::computes) + already, "node"), precision,
                     already == 0 ? "" : fmt::format(" ({} of them before)", already),
                     report.count(NodeRole::kept) + report.count(NodeRole::follows), others,
                     count_text(report.casts, "cast"), bytes_text(report.weight_bytes),
                     bytes_text(report.weight_bytes_before));
}

std::string int8_summary(const QuantizeReport& report) {
  const std::size_t none = report.count(NodeRole::none);
  return fmt::format("{} in {}, {} fused with them, {} in {}{}, {} rounded, {} of weights ({} before)",
                     count_text(report.count(NodeRole::computes) + report.count(NodeRole::moves), "node"),
                     to_string(report.precision), report.count(NodeRole::fused), report.count(NodeRole::kept),
                     report.rest ? fmt::format("{} or f32", to_string(*report.rest)) : "f32",
                     none == 0 ? "" : fmt::format(", {} without f32 results", none),
                     count_text(report.rounded_tensors, "tensor"), bytes_text(report.weight_bytes),
                     bytes_text(report.weight_bytes_before));
}

void add_nodes(Listing& text, const QuantizeReport& report, bool explain) {
  constexpr std::size_t widest = 60;
  Table table;
  for (const QuantizedNode& node : report.nodes) {
    const bool is_kept = node.role == NodeRole::kept;
    if (!is_kept && !explain) continue;
    table.add({{node.type, node.is_kept_by_numbers() ? Color::caution : Color::none},
               shortened(describe(node.node), widest),
               {node.explanation, is_kept ? Color::none : Color::faint}});
  }
  if (table.empty()) return;
  text.add("");
  text.add(explain ? "Nodes" : report.has_8_bits() ? fmt::format("Not in {}", to_string(report.precision)) : "In f32");
  text.add(std::move(table));
}

void add_tensors(Listing& text, const QuantizeReport& report) {
  constexpr std::size_t widest = 48;
  constexpr double whole = 100;
  Table table;
  for (const QuantizedTensor& tensor : report.tensors) {
    std::string found;
    if (tensor.was_observed) {
      found = fmt::format("{:.4g} to {:.4g}", tensor.lowest, tensor.highest);
      if (tensor.snr_db) found += fmt::format(", {:.1f} dB after rounding", *tensor.snr_db);
      if (tensor.saturated > 0) found += fmt::format(", {:.2g} % saturate", whole * tensor.saturated);
    }
    table.add({shortened(tensor.name, widest), fmt::format("±{:.4g}", tensor.threshold), {found, Color::faint}});
  }
  text.add("");
  text.add(fmt::format("Tensors in {}, and the value that becomes {}", to_string(report.precision),
                       largest_text(report.precision)));
  text.add(std::move(table));
}

/// Adds the changes of --improve.
void add_improvements(Listing& text, const QuantizeReport& report) {
  std::vector<std::string> parts;
  for (const AppliedImprovement& each : applied_improvements(report.improvements)) {
    parts.push_back(fmt::format("{}: {}", each.done, count_text(each.count, each.noun)));
  }
  if (!parts.empty()) text.add(fmt::format("improvements: {}", fmt::join(parts, ", ")));
}

/// Adds a table of the outputs' errors; `basis` is the end of its title. If the errors of an output in plain_outputs
/// differ, adds a row with them, in which `plain` names the model that has these errors.
void add_outputs(Listing& text, const QuantizeReport& report, const std::string& basis, const std::string& plain) {
  Table table;
  for (std::size_t i = 0; i < report.outputs.size(); ++i) {
    const std::string is = quality_text(report.outputs[i]);
    const std::string was = quality_text(report.plain_outputs[i]);
    table.add({{report.outputs[i].name, Color::strong}, is});
    if (is != was) table.add({"", {fmt::format("{}: {}", plain, was), Color::faint}});
  }
  text.add("");
  text.add(fmt::format("Outputs, compared with the f32 network on the CPU{}", basis));
  text.add(std::move(table));
  if (std::ranges::any_of(report.outputs, [](const report::OutputFigures& each) { return !each.judged_by.empty(); })) {
    text.add(
        "Rounding changes the order of detections with nearly equal scores, so elements at the same index may differ; "
        "`graft verify` finds out whether the detections are the same.");
  }
}

/// Adds the metric of the f32 network and of the quantized model, and, if it is the top-1 agreement, its outputs.
void add_metric(Listing& text, const QuantizeReport& report) {
  const auto shown = [](const std::optional<double>& value) { return value ? fmt::format("{:.6g}", *value) : "none"; };
  const std::string first = shown(report.trials.front().metric);
  const std::string last = shown(report.metric_int8);
  text.add("");
  const std::string without_kept = first == last ? "" : fmt::format(", {} without layers kept in f32", first);
  if (report.has_own_metric) {
    text.add(fmt::format("Metric: {} in f32, {} in {}{}", shown(report.metric_f32), last, to_string(report.precision),
                         without_kept));
  } else if (report.is_metric_accuracy) {
    text.add(fmt::format("Metric: {} with the given classes, in percent: {} in f32, {} in {}{}", metric_name(report),
                         shown(report.metric_f32), last, to_string(report.precision), without_kept));
  } else {
    text.add(fmt::format("Metric: {}, in percent of the rows: {} in {}{}", metric_name(report), last,
                         to_string(report.precision), without_kept));
  }
}

Listing types_text(const QuantizeReport& report, bool explain) {
  Listing text;
  add_nodes(text, report, explain);
  for (const report::AdjustedConstant& constant : report.adjusted_constants) {
    text.add(fmt::format("note: the constant '{}': {}", constant.name, constant.change));
  }
  for (const std::string& note : report.notes) text.add("note: " + note);
  add_outputs(text, report, report.runs > 1 ? fmt::format(", the worst of {} runs", report.runs) : "",
              fmt::format("all in {}", to_string(report.precision)));
  if (!report.has_data) {
    text.add(fmt::format("based on synthetic inputs ({}); real inputs may have a wider range: use --data",
                         fmt::join(report.inputs, ", ")));
  }
  return text;
}

Listing int8_text(const QuantizeReport& report, bool explain) {
  Listing text;
  add_nodes(text, report, explain);
  if (explain) add_tensors(text, report);
  add_improvements(text, report);
  for (const std::string& note : report.notes) text.add("note: " + note);
  if (!report.outputs.empty()) {
    add_outputs(text, report, fmt::format(", for {}", count_text(static_cast<std::size_t>(report.judged), "sample")),
                "without layers kept in f32");
  }
  if (report.metric_int8) add_metric(text, report);
  return text;
}

}  // namespace

std::string quantize_summary(const QuantizeReport& report) {
  return report.has_8_bits() ? int8_summary(report) : types_summary(report);
}

Listing quantize_text(const QuantizeReport& report, bool explain) {
  return report.has_8_bits() ? int8_text(report, explain) : types_text(report, explain);
}

std::string missed_limit_text(const QuantizeReport& report) {
  const std::string next =
      !report.check || report.check->command.empty()
          ? ""
          : fmt::format("\n`{} --layers` shows the first node that differs", report.check->command);
  if (report.meets_limits) {
    std::string missed = missed_check_text(*report.check, "the f32 model");
    if (report.check->report && report.check->report->dispute) return missed;
    if (!report.has_8_bits()) return missed + (report.verified() == report::Verdict::different ? next : "");
    return missed + "\n--limit 20 keeps layers in f32 until each output has 20 dB; a lower --limit accepts less" + next;
  }
  if (report.has_8_bits()) {
    return fmt::format("every tried model with layers in {} misses the limit; the written model is the best of them{}",
                       to_string(report.precision), next);
  }
  return fmt::format(
      "an output has a signal-to-noise ratio below {:g} dB, and keeping more nodes in f32 does not help\n--limit sets "
      "the required signal-to-noise ratio{}",
      report.limit_db.value_or(0), next);
}

std::vector<AppliedImprovement> applied_improvements(const report::AppliedImprovements& improvements) {
  std::vector<AppliedImprovement> applied{
      {.done = "equalized", .count = improvements.equalize.value_or(0), .noun = "pair"},
      {.done = "smoothed", .count = improvements.smooth.value_or(0), .noun = "tensor"},
      {.done = "rounded adaptively", .count = improvements.round.value_or(0), .noun = "layer"},
      {.done = "bias corrected", .count = improvements.bias.value_or(0), .noun = "layer"}};
  std::erase_if(applied, [](const AppliedImprovement& each) { return each.count == 0; });
  return applied;
}

std::string quality_text(const report::OutputFigures& output) {
  if (!output.incomparable.empty()) return output.incomparable;
  if (!output.is_real) {
    return output.differing == 0 ? fmt::format("no difference in {}", count_text(output.elements, "element"))
                                 : fmt::format("{} of {} elements differ", output.differing, output.elements);
  }
  if (output.not_finite != 0) {
    return fmt::format("{} of {} elements are NaN or infinite", output.not_finite, output.elements);
  }
  std::string text = output.snr_db               ? fmt::format("SNR {:.1f} dB", *output.snr_db)
                     : output.largest_error == 0 ? std::string("no difference")
                                                 : std::string("no signal");
  if (output.largest_error != 0) text += fmt::format(", largest error {:.2g}", output.largest_error);
  if (output.rows != 0) {
    text += fmt::format(", top-1 agreement in {} of {} rows", output.same_top, output.rows);
  }
  return output.judged_by.empty() ? text : fmt::format("judged by {}: {}", output.judged_by, text);
}

std::string metric_name(const QuantizeReport& report) {
  if (report.has_own_metric) return "the metric";
  if (report.is_metric_accuracy) return fmt::format("accuracy of {}", fmt::join(report.metric_outputs, ", "));
  return fmt::format("top-1 agreement of {} with f32", fmt::join(report.metric_outputs, ", "));
}

std::string largest_text(report::Precision precision) {
  return precision == report::Precision::int8 ? "127 steps" : "448";
}

}  // namespace graft::present

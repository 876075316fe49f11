// Writes the nodes, tensors and outputs of a model in int8 or f8.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "onnx/node_ref.hpp"
#include "present/html/quantize_int8_page.hpp"
#include "present/html/quantize_page.hpp"
#include "present/text/quantize_text.hpp"
#include "present/text/value_check_text.hpp"

namespace graft::present {
namespace {

std::size_t count_of(const quant::Int8Plan& plan, quant::Int8Kind kind) {
  return static_cast<std::size_t>(std::count_if(plan.nodes.begin(), plan.nodes.end(),
                                                [&](const quant::Int8Node& node) { return node.kind == kind; }));
}

void add_nodes(Listing& text, const quant::ChosenInt8& chosen, bool explain) {
  constexpr std::size_t widest = 60;
  Table table;
  for (const quant::Int8Node& node : chosen.plan.nodes) {
    const bool is_kept = node.kind == quant::Int8Kind::kept;
    if (!is_kept && !explain) continue;
    table.add({{type_name(chosen, node), is_kept && !node.by_form ? Color::caution : Color::none},
               shortened(onnx::describe(node.node), widest),
               {explanation(chosen, node), is_kept ? Color::none : Color::faint}});
  }
  if (table.empty()) return;
  text.add("");
  text.add(explain ? "Nodes" : fmt::format("Not in {}", to_string(chosen.plan.type)));
  text.add(std::move(table));
}

void add_tensors(Listing& text, const quant::ChosenInt8& chosen) {
  constexpr std::size_t widest = 48;
  constexpr double whole = 100;
  Table table;
  for (const quant::Int8Tensor& tensor : chosen.tensors) {
    std::string found;
    if (tensor.found) {
      found = fmt::format("{:.4g} to {:.4g}", tensor.found->figures().lowest, tensor.found->figures().highest);
      if (tensor.snr_db) found += fmt::format(", {:.1f} dB after rounding", *tensor.snr_db);
      if (tensor.saturated > 0) found += fmt::format(", {:.2g} % saturate", whole * tensor.saturated);
    }
    table.add({shortened(tensor.name, widest), fmt::format("±{:.4g}", tensor.threshold), {found, Color::faint}});
  }
  text.add("");
  text.add(fmt::format("Tensors in {}, and the value that becomes {}", to_string(chosen.plan.type),
                       largest_text(chosen.plan.type)));
  text.add(std::move(table));
}

void add_outputs(Listing& text, const quant::ChosenInt8& chosen) {
  if (chosen.outputs.empty()) return;
  Table table;
  for (std::size_t i = 0; i < chosen.outputs.size(); ++i) {
    const std::string is = quality_text(chosen.outputs[i]);
    const std::string was = quality_text(chosen.plain[i]);
    table.add({{chosen.outputs[i].name, Color::strong}, is});
    if (is != was) table.add({"", {fmt::format("without layers kept in f32: {}", was), Color::faint}});
  }
  text.add("");
  text.add(fmt::format("Outputs, compared with the f32 network on the CPU, for {}",
                       count_text(static_cast<std::size_t>(chosen.judged), "sample")));
  text.add(std::move(table));
}

/// Adds the user's metric of the f32 network and of the quantized model.
void add_metric(Listing& text, const quant::ChosenInt8& chosen) {
  const auto shown = [](const std::optional<double>& value) { return value ? fmt::format("{:.6g}", *value) : "none"; };
  const std::string first = shown(chosen.trials.front().metric);
  const std::string last = shown(chosen.metric_int8);
  text.add("");
  text.add(fmt::format("Metric: {} in f32, {} in {}{}", shown(chosen.metric_f32), last, to_string(chosen.plan.type),
                       first == last ? "" : fmt::format(", {} without layers kept in f32", first)));
}

/// Adds the changes of --improve.
void add_improvements(Listing& text, const quant::ChosenInt8& chosen) {
  std::vector<std::string> parts;
  for (const AppliedImprovement& each : applied_improvements(chosen)) {
    parts.push_back(fmt::format("{}: {}", each.done, count_text(each.count, each.noun)));
  }
  if (!parts.empty()) text.add(fmt::format("improvements: {}", fmt::join(parts, ", ")));
}

}  // namespace

std::vector<AppliedImprovement> applied_improvements(const quant::ChosenInt8& chosen) {
  const auto changed = [](const auto& improved) {
    const auto count =
        std::count_if(improved.begin(), improved.end(), [](const auto& each) { return each.why_not.empty(); });
    return static_cast<std::size_t>(count);
  };
  std::vector<AppliedImprovement> applied{
      {.name = "equalize", .done = "equalized", .count = chosen.equalized.size(), .noun = "pair"},
      {.name = "smooth", .done = "smoothed", .count = changed(chosen.smoothed), .noun = "tensor"},
      {.name = "round", .done = "rounded adaptively", .count = changed(chosen.rounded), .noun = "layer"},
      {.name = "bias", .done = "bias corrected", .count = chosen.corrected.size(), .noun = "layer"}};
  std::erase_if(applied, [](const AppliedImprovement& each) { return each.count == 0; });
  return applied;
}

std::string int8_summary(const toolkit::Int8Report& report, const quant::Int8Options& options) {
  const quant::ChosenInt8& chosen = report.chosen;
  const std::size_t in_int8 =
      count_of(chosen.plan, quant::Int8Kind::computes) + count_of(chosen.plan, quant::Int8Kind::moves);
  return fmt::format("{} in {}, {} fused with them, {} in {}, {} rounded, {} of weights ({} before)",
                     count_text(in_int8, "node"), to_string(chosen.plan.type),
                     count_of(chosen.plan, quant::Int8Kind::follows), count_of(chosen.plan, quant::Int8Kind::kept),
                     options.rest ? fmt::format("{} or f32", to_string(*options.rest)) : "f32",
                     count_text(chosen.placed.quantized_tensors, "tensor"), bytes_text(report.weights.after),
                     bytes_text(report.weights.before));
}

Listing int8_text(const toolkit::Int8Report& report, bool has_metric, bool explain) {
  const quant::ChosenInt8& chosen = report.chosen;
  Listing text;
  add_nodes(text, chosen, explain);
  if (explain) add_tensors(text, chosen);
  add_improvements(text, chosen);
  for (const std::string& note : chosen.notes) text.add("note: " + note);
  add_outputs(text, chosen);
  if (has_metric) add_metric(text, chosen);
  return text;
}

std::string missed_int8_text(const toolkit::Int8Report& report, const std::string& verify) {
  const std::string next =
      verify.empty() ? "" : fmt::format("\n`{} --layers` shows the first node that differs", verify);
  if (report.chosen.met) {
    return fmt::format("{}\n--limit 20 keeps layers in f32 until each output has 20 dB; a lower --limit accepts less{}",
                       missed_check_text(report.check, "the f32 model"), next);
  }
  return fmt::format(
      "the outputs miss the limit whichever layer is in {}; the written model is the best with such a layer{}",
      to_string(report.chosen.plan.type), next);
}

}  // namespace graft::present

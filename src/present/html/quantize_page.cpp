// Nodes are found in the typed model by the names of their results.
#include "present/html/quantize_page.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "present/html/model_graph.hpp"
#include "present/html/page.hpp"
#include "present/text/quantize_text.hpp"
#include "present/text/table.hpp"

namespace graft::present {
namespace {

constexpr auto narrow_kind = "narrow";
constexpr auto kept_type_kind = "kept";
constexpr auto left_kind = "left";
constexpr auto type_cast_kind = "cast";

const char* kind_in_16_bits(const report::QuantizedNode& node) {
  switch (node.role) {
    case report::NodeRole::computes: return narrow_kind;
    case report::NodeRole::kept: return node.is_kept_by_numbers() ? kept_type_kind : left_kind;
    case report::NodeRole::follows: return left_kind;
    default: return "";
  }
}

void add_kinds(html::Report& page, report::Precision precision) {
  const std::string type(to_string(precision));
  const auto add = [&](const char* key, const char* mark, std::string title, std::string meaning, html::Tone tone) {
    page.kinds.push_back(
        {.key = key, .mark = mark, .title = std::move(title), .meaning = std::move(meaning), .tone = tone});
  };
  add(narrow_kind, "✓", type, "computes in " + type, html::Tone::green);
  add(left_kind, "=", "f32", "has no other form, was requested, or all its neighbors are in f32", html::Tone::blue);
  add(kept_type_kind, "!", "kept in f32", "would fail or lose accuracy in " + type, html::Tone::amber);
  add(type_cast_kind, "⇄", "cast", "converts from one type to the other", html::Tone::violet);
}

std::optional<html::Place> place_of(const html::Report& page, const html::ModelPlaces& drawn,
                                    const report::QuantizedNode& node, const std::string& type) {
  // If a Cast follows the node, the Cast has the name of the tensor, and the node's result has a suffix such as "/f16".
  for (const std::string& name : {node.node.id + "/" + type, node.node.id}) {
    const auto found = drawn.tensors.find(name);
    if (found == drawn.tensors.end()) continue;
    const html::Node& there = page.graphs[found->second.graph].nodes[found->second.node];
    if (!there.is_end && (there.op != "Cast" || node.node.op == "Cast")) return found->second;
  }
  return std::nullopt;
}

}  // namespace

html::Report new_quantize_page(const report::QuantizeReport& report) {
  html::Report page = new_model_report("quantize", report.file);
  page.summary.push_back({"written", fmt::format("{}, {}", report.output, quantize_summary(report))});
  page.verdict = report.meets_limits ? "Every output meets its limit." : "An output misses its limit.";
  if (!report.meets_limits) {
    page.problems.push_back({.title = "Missed limit", .kind = {}, .reason = missed_limit_text(report), .advice = {}});
  }
  return page;
}

html::Report types_page(const report::QuantizeReport& report) {
  html::Report page = new_quantize_page(report);
  for (const std::string& input : report.inputs) {
    page.summary.push_back({report.has_data ? "input" : "synthetic input", input});
  }
  page.summary.push_back({"based on", count_text(report.runs, "run")});
  for (const std::string& note : report.notes) page.summary.push_back({"note", note});
  using Type = html::Column::Type;
  add_kinds(page, report.precision);
  const std::string type(to_string(report.precision));
  const html::ModelPlaces drawn = html::add_graphs(page, report.model.graph(), "in " + type);
  for (html::Graph& graph : page.graphs) {
    for (html::Node& node : graph.nodes) {
      if (node.op == "Cast" && !node.is_end) node.kind = type_cast_kind;
    }
  }
  html::Table outputs{.title = "Outputs, compared with the f32 network on the CPU",
                      .columns = {{"output", Type::code}, {"as written", Type::text}, {"all in " + type, Type::text}}};
  for (std::size_t i = 0; i < report.outputs.size(); ++i) {
    outputs.rows.push_back(
        {report.outputs[i].name, quality_text(report.outputs[i]), quality_text(report.plain_outputs[i])});
  }
  html::Table nodes{.title = "Nodes",
                    .columns = {{"node", Type::node},
                                {"operator", Type::code},
                                {"type", Type::kind},
                                {"why", Type::text},
                                {"largest", Type::number, "value of its first output, in the f32 network"},
                                {"SNR", Type::number, "of this output if only it is rounded, in dB"}}};
  for (const report::QuantizedNode& node : report.nodes) {
    const auto place = place_of(page, drawn, node, type);
    if (place) {
      html::Node& there = page.graphs[place->graph].nodes[place->node];
      there.kind = kind_in_16_bits(node);
      there.reason = node.explanation;
    }
    html::Cell largest;
    html::Cell decibels;
    if (node.has_figures) largest = node.largest();
    if (node.rounding_snr_db) decibels = *node.rounding_snr_db;
    nodes.rows.push_back({node_cell(place, describe(node.node)), node.node.op, std::string(kind_in_16_bits(node)),
                          node.explanation, largest, decibels});
  }
  page.sections.emplace_back(std::move(outputs));
  page.sections.emplace_back(std::move(nodes));
  return page;
}

}  // namespace graft::present

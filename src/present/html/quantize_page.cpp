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
#include "present/text/table.hpp"

namespace graft::present {
namespace {

constexpr auto narrow_kind = "narrow";
constexpr auto kept_type_kind = "kept";
constexpr auto left_kind = "left";
constexpr auto type_cast_kind = "cast";

const char* kind_of(const quant::ChosenNode& node) {
  switch (node.node.type) {
    case quant::NodeType::narrow: return narrow_kind;
    case quant::NodeType::kept:
      return node.why == quant::WhyKept::form || node.why == quant::WhyKept::asked ? left_kind : kept_type_kind;
    case quant::NodeType::follows: return left_kind;
    case quant::NodeType::none: return "";
  }
  return "";
}

void add_kinds(html::Report& page, verify::Precision precision) {
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
                                    const quant::ChosenNode& node, const std::string& type) {
  // If a Cast follows the node, the Cast has the name of the tensor, and the node's result has a suffix such as "/f16".
  for (const std::string& name : {node.node.node.id + "/" + type, node.node.node.id}) {
    const auto found = drawn.tensors.find(name);
    if (found == drawn.tensors.end()) continue;
    const html::Node& there = page.graphs[found->second.graph].nodes[found->second.node];
    if (!there.is_end && (there.op != "Cast" || node.node.node.op == "Cast")) return found->second;
  }
  return std::nullopt;
}

}  // namespace

std::string explanation(const quant::ChosenNode& node) {
  switch (node.node.type) {
    case quant::NodeType::kept: return node.node.reason;
    case quant::NodeType::follows: return "all its neighbors are in f32";
    case quant::NodeType::none:
      if (node.node.before == onnx::ElementType::f64) return "it is f64, which stays";
      return node.node.before ? fmt::format("it is already in {}", to_string(*node.node.before))
                              : "it computes nothing in f32";
    case quant::NodeType::narrow: break;
  }
  if (!node.has_figures) return "it reads its inputs as they are, and has no f32 output";
  const std::string lost = verify::rounding_text(node.rounding);
  return fmt::format("{}{}{}", verify::range_text(node.range),
                     node.rounding.snr_db ? fmt::format(", {:.0f} dB after rounding", *node.rounding.snr_db) : "",
                     lost.empty() ? "" : ", " + lost);
}

std::string quality_text(const verify::OutputFigures& output) {
  if (!output.incomparable.empty()) return output.incomparable;
  if (!output.is_real) {
    return output.differing == 0 ? fmt::format("the same {} elements", output.elements)
                                 : fmt::format("{} of {} elements differ", output.differing, output.elements);
  }
  if (output.not_finite != 0) {
    return fmt::format("{} of {} elements NaN or infinite", output.not_finite, output.elements);
  }
  std::string text = output.snr_db               ? fmt::format("SNR {:.1f} dB", *output.snr_db)
                     : output.largest_error == 0 ? std::string("no difference")
                                                 : std::string("no signal");
  if (output.largest_error != 0) text += fmt::format(", largest error {:.2g}", output.largest_error);
  if (output.rows != 0) {
    text += fmt::format(", top-1 agreement in {} of {} rows", output.same_top, output.rows);
  }
  return text;
}

html::Report new_quantize_page(const QuantizedFiles& files, const std::string& summary) {
  html::Report page = new_model_report("quantize", files.model);
  page.summary.push_back({"written", fmt::format("{}, {}", files.output, summary)});
  return page;
}

html::Report types_page(const quant::ChosenTypes& chosen, const QuantizedFiles& files, verify::Precision precision,
                        bool has_data, const std::string& summary) {
  html::Report page = new_quantize_page(files, summary);
  for (const std::string& input : chosen.inputs) {
    page.summary.push_back({has_data ? "input" : "synthetic input", input});
  }
  page.summary.push_back({"based on", count_text(chosen.runs, "run")});
  for (const std::string& note : chosen.notes) page.summary.push_back({"note", note});
  using Type = html::Column::Type;
  add_kinds(page, precision);
  const std::string type(to_string(precision));
  const html::ModelPlaces drawn = html::add_graphs(page, chosen.typed.model, "in " + type);
  for (html::Graph& graph : page.graphs) {
    for (html::Node& node : graph.nodes) {
      if (node.op == "Cast" && !node.is_end) node.kind = type_cast_kind;
    }
  }
  html::Table outputs{.title = "Outputs, compared with the f32 network on the CPU",
                      .columns = {{"output", Type::code}, {"as written", Type::text}, {"all in " + type, Type::text}}};
  for (std::size_t i = 0; i < chosen.outputs.size(); ++i) {
    outputs.rows.push_back({chosen.outputs[i].name, quality_text(chosen.outputs[i]), quality_text(chosen.plain[i])});
  }
  html::Table nodes{.title = "Nodes",
                    .columns = {{"node", Type::node},
                                {"operator", Type::code},
                                {"type", Type::kind},
                                {"why", Type::text},
                                {"largest", Type::number, "value of its first output, in the f32 network"},
                                {"SNR", Type::number, "of this output if only it is rounded, in dB"}}};
  for (const quant::ChosenNode& node : chosen.nodes) {
    const auto place = place_of(page, drawn, node, type);
    const std::string why = explanation(node);
    if (place) {
      html::Node& there = page.graphs[place->graph].nodes[place->node];
      there.kind = kind_of(node);
      there.reason = why;
    }
    html::Cell largest;
    html::Cell decibels;
    if (node.has_figures) largest = node.range.largest();
    if (node.has_figures && node.rounding.snr_db) decibels = *node.rounding.snr_db;
    nodes.rows.push_back({node_cell(place, onnx::describe(node.node.node)), node.node.node.op,
                          std::string(kind_of(node)), why, largest, decibels});
  }
  page.sections.emplace_back(std::move(outputs));
  page.sections.emplace_back(std::move(nodes));
  return page;
}

}  // namespace graft::present

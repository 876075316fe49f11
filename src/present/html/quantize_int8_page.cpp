// Nodes are found in the written model by the names of their results. The facts of a tensor are shown at the node that
// rounds the tensor.
#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "present/html/model_graph.hpp"
#include "present/html/page.hpp"
#include "present/html/quantize_page.hpp"
#include "present/text/quantize_text.hpp"
#include "present/text/table.hpp"

namespace graft::present {
namespace {

using report::Int8Cost;
using report::Int8Trial;
using report::NodeRole;
using report::OutputFigures;
using report::QuantizedNode;
using report::QuantizedTensor;
using report::QuantizeReport;
using Type = html::Column::Type;

constexpr auto int8_kind = "int8";
constexpr auto fused_kind = "fused";
constexpr auto moves_kind = "moves";
constexpr auto rounding_kind = "rounding";
constexpr auto form_kind = "form";
constexpr auto rest_kind = "rest";
constexpr auto cast_kind = "cast";
constexpr auto kept_kind = "kept";

constexpr double whole = 100;

const char* kind_in_8_bits(const QuantizedNode& node) {
  switch (node.role) {
    case NodeRole::computes: return int8_kind;
    case NodeRole::moves: return moves_kind;
    case NodeRole::fused: return fused_kind;
    case NodeRole::kept:
      if (node.type != "f32") return rest_kind;
      return node.why == report::WhyKept::form ? form_kind : kept_kind;
    default: return "";
  }
}

void add_kinds(html::Report& page, const QuantizeReport& report) {
  using html::Tone;
  const std::string type(to_string(report.precision));
  page.kinds = {
      {.key = int8_kind, .mark = "✓", .title = type, .meaning = "computes from " + type, .tone = Tone::green},
      {.key = fused_kind,
       .mark = "+",
       .title = "fused",
       .meaning = fmt::format("computes on the sums of the {} node before it, before they are rounded", type),
       .tone = Tone::green},
      {.key = moves_kind,
       .mark = "→",
       .title = fmt::format("passes {} on", type),
       .meaning = "moves elements only",
       .tone = Tone::plain},
      {.key = rounding_kind,
       .mark = "⇄",
       .title = "Q/DQ",
       .meaning = fmt::format("converts to {} and back; TensorRT fuses it with its neighbors", type),
       .tone = Tone::violet},
      {.key = cast_kind,
       .mark = "⇆",
       .title = "cast",
       .meaning = "converts between f32 and the type of --rest",
       .tone = Tone::violet},
      {.key = rest_kind,
       .mark = "~",
       .title = std::string(to_string(report.has_rest ? *report.rest : report::Precision::f16)),
       .meaning = fmt::format("not quantized to {}, and not in f32", type),
       .tone = Tone::blue},
      {.key = form_kind,
       .mark = "=",
       .title = "f32 by form",
       .meaning = fmt::format("has no {} form at its place in the network", type),
       .tone = Tone::blue},
      {.key = kept_kind,
       .mark = "!",
       .title = "kept in f32",
       .meaning = "by the search, by your options, or because a scale is missing",
       .tone = Tone::amber},
  };
}

// ---- The graph

/// The drawn nodes of the written network, by tensor name.
class Written {
 public:
  Written(html::Report& page, html::ModelPlaces places, report::Precision type)
      : page_(page), places_(std::move(places)), type_(type) {}

  [[nodiscard]] html::Node& at(const html::Place& place) const { return page_.graphs[place.graph].nodes[place.node]; }

  /// Returns the node that computes the tensor. If the node returns another type, the name of its result has a suffix
  /// such as "/int8", and the DequantizeLinear or Cast after it has the tensor's name.
  [[nodiscard]] std::optional<html::Place> maker_of(const std::string& tensor) const {
    std::optional<html::Place> cast;
    for (const char* ending : {"/int8", "/f8", "/f16", "/bf16", ""}) {
      const auto found = places_.tensors.find(tensor + ending);
      if (found == places_.tensors.end() || is_rounding(at(found->second)) || at(found->second).is_end) continue;
      if (at(found->second).op != "Cast") return found->second;
      cast = found->second;
    }
    return cast;
  }

  /// Returns the node whose result is the tensor in 8 bits: a QuantizeLinear, or an operator that computes 8 bits.
  [[nodiscard]] std::optional<html::Place> rounder_of(const std::string& tensor) const {
    const auto found = places_.tensors.find(fmt::format("{}/{}", tensor, to_string(type_)));
    return found == places_.tensors.end() ? std::nullopt : std::optional(found->second);
  }

  static bool is_rounding(const html::Node& node) {
    return node.op == "QuantizeLinear" || node.op == "DequantizeLinear";
  }

 private:
  html::Report& page_;
  html::ModelPlaces places_;
  report::Precision type_;
};

/// The signal-to-noise ratio in dB of the worst output if a single layer is quantized, by the id of this layer's node
/// (report::Sensitivity).
using AloneByKey = std::map<std::string, double, std::less<>>;

AloneByKey alone_by_key(const QuantizeReport& report) {
  AloneByKey alone;
  for (const report::Sensitivity& layer : report.sensitivities) alone.emplace(layer.node.id, layer.snr_db);
  return alone;
}

void color_nodes(const Written& written, const QuantizeReport& report, const AloneByKey& alone) {
  for (const QuantizedNode& planned : report.nodes) {
    const auto place = written.maker_of(planned.node.id);
    if (!place) continue;
    html::Node& node = written.at(*place);
    node.kind = kind_in_8_bits(planned);
    node.reason = planned.explanation;
    const auto found = alone.find(planned.node.id);
    if (found != alone.end())
      node.facts.push_back({fmt::format("only this layer in {}", to_string(report.precision)),
                            fmt::format("SNR {:.1f} dB", found->second)});
  }
}

html::Table table_of_nodes(const Written& written, const QuantizeReport& report, const AloneByKey& alone) {
  html::Table table{
      .title = "Nodes",
      .columns = {{"node", Type::node}, {"operator", Type::code}, {"role", Type::kind}, {"why", Type::text}}};
  if (!alone.empty()) {
    table.columns.push_back(
        {"alone", Type::number,
         fmt::format("SNR of the worst output with only this layer in {}, in dB", to_string(report.precision)), true});
  }
  for (const QuantizedNode& planned : report.nodes) {
    std::vector<html::Cell> row{node_cell(written.maker_of(planned.node.id), describe(planned.node)), planned.node.op,
                                std::string(kind_in_8_bits(planned)), planned.explanation};
    const auto found = alone.find(planned.node.id);
    if (found != alone.end())
      row.emplace_back(found->second);
    else if (!alone.empty())
      row.emplace_back();
    table.rows.push_back(std::move(row));
  }
  return table;
}

// ---- Tensors

std::string threshold_text(const QuantizedTensor& tensor) { return fmt::format("±{:.4g}", tensor.threshold); }

html::Distribution distribution_of(const QuantizedTensor& tensor, report::Precision type) {
  return {.title = tensor.name,
          .bin_width = tensor.distribution->bin_width,
          .counts = tensor.distribution->counts,
          .zeros = tensor.distribution->zeros,
          .threshold = tensor.threshold,
          .threshold_title = largest_text(type)};
}

/// For each group of tensors that share a scale, by the name of the group, the names of the tensors.
using Groups = std::map<std::string, std::vector<std::string>, std::less<>>;

std::string others_of(const QuantizedTensor& tensor, const Groups& groups) {
  constexpr std::size_t most_names = 6;
  std::vector<std::string> others;
  for (const std::string& name : groups.at(tensor.group)) {
    if (name != tensor.name) others.push_back(name);
  }
  const std::size_t left_out = others.size() - std::min(others.size(), most_names);
  others.resize(others.size() - left_out);
  return fmt::format("{}{}", fmt::join(others, ", "), left_out == 0 ? "" : fmt::format(" and {} more", left_out));
}

std::vector<html::Fact> facts_of(const QuantizedTensor& tensor, const Groups& groups, report::Precision type) {
  std::vector<html::Fact> facts{
      {fmt::format("{} tensor", to_string(type)), tensor.name},
      {"threshold", threshold_text(tensor)},
      {type == report::Precision::int8 ? "size of one step" : "value of 1", fmt::format("{:.4g}", tensor.scale)}};
  const std::string others = others_of(tensor, groups);
  if (!others.empty()) facts.push_back({"tensors with the same scale", others});
  if (!tensor.was_observed) return facts;
  facts.push_back({"observed range", fmt::format("{:.4g} to {:.4g}", tensor.lowest, tensor.highest)});
  if (tensor.snr_db) facts.push_back({"after rounding", fmt::format("SNR {:.1f} dB", *tensor.snr_db)});
  facts.push_back({"saturates", fmt::format("{:.2g} %", whole * tensor.saturated)});
  return facts;
}

std::vector<html::Cell> row_of(const QuantizedTensor& tensor, const std::string& shared, const html::Cell& place,
                               const html::Cell& distribution) {
  std::vector<html::Cell> row{place, distribution, {}, {}, tensor.threshold, static_cast<double>(tensor.scale),
                              {},    {},           {}};
  if (tensor.was_observed) {
    row[2] = tensor.lowest;
    row[3] = tensor.highest;
    row[6] = whole * tensor.saturated;
  }
  if (tensor.snr_db) row[7] = *tensor.snr_db;
  if (!shared.empty()) row[8] = shared;
  return row;
}

std::string note_on(const std::vector<QuantizedTensor>& tensors, report::Precision type) {
  const QuantizedTensor* worst = nullptr;
  for (const QuantizedTensor& tensor : tensors) {
    if (tensor.snr_db && (worst == nullptr || *tensor.snr_db < *worst->snr_db)) worst = &tensor;
  }
  std::string note = fmt::format("The threshold becomes {}; values beyond ± threshold saturate.", largest_text(type));
  if (worst != nullptr) {
    note += fmt::format(
        " The small charts are histograms of |x| on a logarithmic scale. Rounding affects '{}' most: its SNR is {:.1f} "
        "dB.",
        worst->name, *worst->snr_db);
  }
  return note;
}

html::Table add_tensors(html::Report& page, const Written& written, const std::vector<QuantizedTensor>& tensors,
                        report::Precision type) {
  html::Table table{
      .title = fmt::format("Tensors in {}", to_string(type)),
      .note = note_on(tensors, type),
      .columns = {{"tensor", Type::node},
                  {"distribution", Type::distribution, "histogram of |x|, and the threshold"},
                  {"lowest", Type::number, "of the observed values"},
                  {"highest", Type::number, "of the observed values"},
                  {"threshold", Type::number, fmt::format("value that becomes {}", largest_text(type))},
                  {"scale", Type::number, type == report::Precision::int8 ? "size of one step" : "value of 1"},
                  {"saturated", Type::number, "share of values beyond the threshold, in percent"},
                  {"SNR", Type::number, "of the rounded tensor, in dB", true},
                  {"scale of", Type::code, "tensors that share a scale have the same name here"}}};
  Groups groups;
  for (const QuantizedTensor& tensor : tensors) groups[tensor.group].push_back(tensor.name);
  for (const QuantizedTensor& tensor : tensors) {
    const std::string shared = groups.at(tensor.group).size() > 1 ? tensor.group : "";
    html::Cell distribution;
    std::optional<std::size_t> index;
    if (tensor.distribution) {
      index = page.distributions.size();
      distribution = html::DistributionAt{*index};
      page.distributions.push_back(distribution_of(tensor, type));
    }
    auto place = written.rounder_of(tensor.name);
    const auto maker = written.maker_of(tensor.name);
    for (const auto& there : {place, maker}) {
      if (there) written.at(*there).distribution = index;
    }
    if (place) {
      html::Node& node = written.at(*place);
      const std::vector<html::Fact> facts = facts_of(tensor, groups, type);
      node.facts.insert(node.facts.end(), facts.begin(), facts.end());
      place->text = tensor.name;
    }
    table.rows.push_back(row_of(tensor, shared, node_cell(place, tensor.name), distribution));
  }
  return table;
}

// ---- Outputs

html::Cell decibels_of(const OutputFigures& output) {
  return output.is_real && output.snr_db ? html::Cell(*output.snr_db) : html::Cell();
}

html::Cell agreement_of(const OutputFigures& output) {
  if (output.rows == 0) return {};
  return whole * static_cast<double>(output.same_top) / static_cast<double>(output.rows);
}

html::Table table_of_outputs(const QuantizeReport& report) {
  const bool was_searched = report.trials.size() > 1;
  html::Table table{
      .title = "Outputs, compared with the f32 network on the CPU",
      .columns = {{"output", Type::code},
                  {"as written", Type::text},
                  {"SNR", Type::number, "in dB", true},
                  {"top-1", Type::number, "outputs of classifiers: top-1 agreement with f32, in percent"}}};
  if (was_searched) {
    const std::string all = fmt::format("all in {}", to_string(report.precision));
    table.columns.push_back({all, Type::text, "without layers that the search keeps in f32"});
    table.columns.push_back({"SNR, " + all, Type::number, "in dB", true});
    table.columns.push_back({"top-1, " + all, Type::number, "in percent"});
  }
  for (std::size_t i = 0; i < report.outputs.size(); ++i) {
    const OutputFigures& is = report.outputs[i];
    std::vector<html::Cell> row{is.name, quality_text(is), decibels_of(is), agreement_of(is)};
    if (was_searched) {
      const OutputFigures& was = report.plain_outputs[i];
      for (html::Cell& cell : std::vector<html::Cell>{quality_text(was), decibels_of(was), agreement_of(was)}) {
        row.push_back(std::move(cell));
      }
    }
    table.rows.push_back(std::move(row));
  }
  return table;
}

// ---- The search

/// The measure by which trials are judged: the metric, or without one the signal-to-noise ratio of the worst output.
class Goal {
 public:
  explicit Goal(const QuantizeReport& report)
      : by_metric_(report.metric_f32.has_value()),
        metric_name_(report.has_own_metric ? "the metric" : metric_name(report) + ", %"),
        metric_f32_(report.metric_f32),
        limit_db_(report.limit_db) {
    if (metric_f32_ && report.max_drop) least_metric_ = *metric_f32_ - *report.max_drop;
  }

  [[nodiscard]] double of(const Int8Trial& trial) const { return by_metric_ ? trial.metric.value_or(0) : trial.snr_db; }

  [[nodiscard]] bool is_met_by(const Int8Trial& trial) const {
    if (limit_db_ && trial.snr_db < *limit_db_) return false;
    return !least_metric_ || trial.metric.value_or(0) >= *least_metric_;
  }

  [[nodiscard]] html::Scatter::Axis axis() const {
    if (!by_metric_) return {"SNR of the worst output, dB"};
    return {metric_name_, 2};
  }

  [[nodiscard]] std::vector<html::Scatter::Line> lines() const {
    std::vector<html::Scatter::Line> lines;
    if (by_metric_ && metric_f32_) lines.push_back({"f32", *metric_f32_});
    if (by_metric_ && least_metric_) lines.push_back({"required", *least_metric_});
    if (!by_metric_ && limit_db_) lines.push_back({"required", *limit_db_});
    return lines;
  }

 private:
  bool by_metric_;
  std::string metric_name_;
  std::optional<double> metric_f32_;
  std::optional<double> limit_db_;
  std::optional<double> least_metric_;
};

double share(double part, double all) { return all == 0 ? 0 : whole * part / all; }

struct RelativeCost {
  double multiply_adds = 0;
  double bytes_moved = 0;
};

/// Returns a cost in percent of the cost of the f32 network.
RelativeCost relative(const Int8Cost& cost, const Int8Cost& f32) {
  return {share(cost.weighted_multiply_adds(), f32.weighted_multiply_adds()), share(cost.bytes_moved, f32.bytes_moved)};
}

std::string label_of(const Int8Trial& trial, report::Precision type) {
  return trial.kept == 0 ? fmt::format("all in {}", to_string(type)) : count_text(trial.kept, "layer") + " kept in f32";
}

html::Scatter plot_of(const QuantizeReport& report, const Goal& goal) {
  html::Scatter plot{
      .title = "Accuracy against speed",
      .note =
          "Every model that the search tried. The speed is estimated from the work of the layers, relative to the "
          "network in f32: further left is faster. One multiply-add in f32 counts as 16 in " +
          std::string(to_string(report.precision)) + ".",
      .x = {{"weighted multiply-adds, % of the f32 model"}, {"bytes moved, % of the f32 model"}},
      .y = goal.axis(),
      .series = {{"good enough", html::Tone::green}, {"not good enough", html::Tone::red}},
      .lines = goal.lines(),
      .points = {}};
  for (std::size_t i = 0; i < report.trials.size(); ++i) {
    const Int8Trial& trial = report.trials[i];
    const RelativeCost cost = relative(trial.cost, report.f32_cost);
    plot.points.push_back({.label = label_of(trial, report.precision),
                           .x = {cost.multiply_adds, cost.bytes_moved},
                           .y = goal.of(trial),
                           .series = goal.is_met_by(trial) ? 0U : 1U,
                           .is_chosen = i == report.written_trial});
  }
  return plot;
}

html::Table table_of_trials(const QuantizeReport& report, const Goal& goal) {
  html::Table table{
      .title = "Trials",
      .columns = {{"trial", Type::number, "in the order of the search"},
                  {"model", Type::text},
                  {"SNR", Type::number, "of the worst output, in dB"},
                  {"metric", Type::number, "top-1 agreement in percent, or your own metric; empty if the SNR decides"},
                  {fmt::format("multiply-adds in {}", to_string(report.precision)), Type::number},
                  {"multiply-adds in f32", Type::number},
                  {"bytes moved", Type::number},
                  {"result", Type::text}},
      .is_folded = true};
  for (std::size_t i = 0; i < report.trials.size(); ++i) {
    const Int8Trial& trial = report.trials[i];
    std::string is = goal.is_met_by(trial) ? "good enough" : "not good enough";
    if (i == report.written_trial) is += ", chosen";
    table.rows.push_back({static_cast<double>(i + 1), label_of(trial, report.precision), trial.snr_db,
                          trial.metric ? html::Cell(*trial.metric) : html::Cell(), trial.cost.int8_multiply_adds,
                          trial.cost.f32_multiply_adds, trial.cost.bytes_moved, is});
  }
  return table;
}

html::BarChart chart_of_layers(const QuantizeReport& report) {
  constexpr std::size_t most_rows = 24;
  html::BarChart chart{.title = "Most sensitive layers",
                       .note = fmt::format("SNR of the worst output with only this layer in {0}, in dB. Short bars are "
                                           "layers that lose accuracy in {0}.",
                                           to_string(report.precision)),
                       .line = report.limit_db,
                       .line_title = "required",
                       .series = {{fmt::format("in {}", to_string(report.precision)), html::Tone::green},
                                  {"kept in f32", html::Tone::amber}},
                       .rows = {}};
  if (report.sensitivities.size() > most_rows) {
    chart.note += fmt::format(" These are the worst {} of {} layers; the table of nodes has all of them.", most_rows,
                              report.sensitivities.size());
  }
  for (const report::Sensitivity& layer : report.sensitivities) {
    if (chart.rows.size() == most_rows) break;
    const auto planned = std::find_if(report.nodes.begin(), report.nodes.end(),
                                      [&](const QuantizedNode& node) { return node.node.id == layer.node.id; });
    const bool is_kept = planned != report.nodes.end() && planned->role == NodeRole::kept;
    html::BarChart::Row row{.label = describe(layer.node), .note = is_kept ? "kept in f32" : "", .values = {{}, {}}};
    row.values[is_kept ? 1 : 0] = layer.snr_db;
    chart.rows.push_back(std::move(row));
  }
  return chart;
}

// ---- Facts

std::string method_text(const QuantizeReport& report) {
  if (!report.method) return "scales of the calibration cache";
  const std::string method = report.method_text();
  return report.method == report::ThresholdMethod::percentile ? fmt::format("{} {:g} %", method, report.percentile)
                                                              : method;
}

void add_facts(html::Report& page, const QuantizeReport& report) {
  page.summary.push_back(
      {"thresholds", !report.method ? method_text(report)
                                    : fmt::format("{}, {}", method_text(report),
                                                  count_text(static_cast<std::size_t>(report.samples), "sample"))});
  if (!report.trials.empty()) {
    const RelativeCost cost = relative(report.trials[report.written_trial].cost, report.f32_cost);
    page.summary.push_back(
        {"estimated work", fmt::format("{:.0f} % of the f32 model's multiply-adds (one in f32 counts as 16 in {}), "
                                       "{:.0f} % of the f32 model's bytes moved",
                                       cost.multiply_adds, to_string(report.precision), cost.bytes_moved)});
    page.summary.push_back(
        {"outputs compared", "for " + count_text(static_cast<std::size_t>(report.judged), "sample")});
  }
  constexpr std::size_t most_outputs = 4;
  for (std::size_t i = 0; i < std::min(most_outputs, report.outputs.size()); ++i) {
    page.summary.push_back({report.outputs[i].name, quality_text(report.outputs[i])});
  }
  if (report.limit_db || report.max_drop) {
    std::vector<std::string> asked;
    if (report.limit_db) asked.push_back(fmt::format("{:g} dB", *report.limit_db));
    if (report.max_drop) {
      asked.push_back(fmt::format("a drop of {} by at most {:g}", metric_name(report), *report.max_drop));
    }
    page.summary.push_back(
        {"limit", fmt::format("{}: {}", fmt::join(asked, ", "), report.meets_limits ? "met" : "not met")});
  }
  for (const AppliedImprovement& each : applied_improvements(report.improvements)) {
    page.summary.push_back({each.done, count_text(each.count, each.noun)});
  }
  for (const std::string& note : report.notes) page.summary.push_back({"note", note});
}

}  // namespace

html::Report int8_page(const QuantizeReport& report) {
  html::Report page = new_quantize_page(report);
  add_facts(page, report);
  add_kinds(page, report);
  const Written written(page,
                        html::add_graphs(page, report.model.graph(), fmt::format("in {}", to_string(report.precision))),
                        report.precision);
  for (html::Graph& graph : page.graphs) {
    for (html::Node& node : graph.nodes) {
      if (Written::is_rounding(node)) node.kind = rounding_kind;
      if (report.has_rest && node.op == "Cast") node.kind = cast_kind;
    }
  }
  const AloneByKey alone = alone_by_key(report);
  color_nodes(written, report, alone);
  html::Table tensors = add_tensors(page, written, report.tensors, report.precision);
  if (!report.outputs.empty()) page.sections.emplace_back(table_of_outputs(report));
  if (report.trials.size() > 1) {
    const Goal goal(report);
    page.sections.emplace_back(plot_of(report, goal));
    page.sections.emplace_back(table_of_trials(report, goal));
  }
  if (!report.sensitivities.empty()) page.sections.emplace_back(chart_of_layers(report));
  page.sections.emplace_back(std::move(tensors));
  page.sections.emplace_back(table_of_nodes(written, report, alone));
  return page;
}

}  // namespace graft::present

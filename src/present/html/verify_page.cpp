// The color of a node shows the error of its worst output, divided by the allowed error.
#include "present/html/verify_page.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <utility>

#include "core/comparison_text.hpp"
#include "present/html/model_graph.hpp"
#include "present/html/page.hpp"
#include "present/text/verify_text.hpp"

namespace graft::present {
namespace {

using html::Tone;
using Type = html::Column::Type;

constexpr const char* exact = "exact";
constexpr const char* close = "close";
constexpr const char* within = "within";
constexpr const char* reordered = "reordered";
constexpr const char* not_compared = "not_compared";
constexpr const char* differs = "differs";
constexpr const char* first = "first";

/// The share of the allowed error up to which an error is attributed to rounding. A larger error is marked as "within
/// tolerance" instead of "rounding".
constexpr double share_of_rounding = 0.1;

std::string kind_of(const ComparedTensor& tensor) {
  if (tensor.is_first) return first;
  if (!tensor.is_equal) return differs;
  if (!tensor.not_compared.empty()) return not_compared;
  if (tensor.is_reordered) return reordered;
  if (tensor.difference.max_absolute == 0) return exact;
  return tensor.difference.excess <= share_of_rounding ? close : within;
}

std::vector<html::Kind> verify_kinds() {
  return {{.key = exact,
           .mark = "=",
           .title = "the same",
           .meaning = "no element differs",
           .tone = Tone::plain,
           .is_problem = false},
          {.key = close,
           .mark = "✓",
           .title = "rounding",
           .meaning = "less than a tenth of the tolerance",
           .tone = Tone::green,
           .is_problem = false},
          {.key = within,
           .mark = "≈",
           .title = "within tolerance",
           .meaning = "more than a tenth of the tolerance",
           .tone = Tone::blue,
           .is_problem = false},
          {.key = reordered,
           .mark = "⇄",
           .title = "reordered",
           .meaning = "the same values in another order",
           .tone = Tone::amber,
           .is_problem = false},
          {.key = not_compared,
           .mark = "?",
           .title = "not compared",
           .meaning = "its values are random or cannot be read",
           .tone = Tone::amber,
           .is_problem = true},
          {.key = differs,
           .mark = "✕",
           .title = "differs",
           .meaning = "outside the tolerance, or not comparable",
           .tone = Tone::red,
           .is_problem = true},
          {.key = first,
           .mark = "➊",
           .title = "first divergence",
           .meaning = "differs, although its inputs are correct",
           .tone = Tone::red,
           .is_problem = true}};
}

std::string name_of(const ComparedTensor& tensor) {
  return tensor.reference == tensor.candidate ? tensor.candidate
                                              : fmt::format("{} / {}", tensor.reference, tensor.candidate);
}

std::string reason_of(const ComparedTensor& tensor) {
  if (tensor.is_first) return tensor.diagnosis;  // the error of the node alone, without that of its inputs
  if (tensor.is_equal && !tensor.not_compared.empty()) return tensor.not_compared;
  std::string found = difference_text(tensor.difference);
  if (tensor.floor) found += "; " + tensor.floor->text;
  return tensor.diagnosis.empty() ? found : fmt::format("{}; {}", tensor.diagnosis, found);
}

/// Returns a value with its index: "0.53 at [0, 3, 1, 2]".
std::string at(double value, const std::vector<std::int64_t>& index) {
  const bool has_place = std::isfinite(value) && !index.empty();
  return fmt::format("{:.3g}{}", value, has_place ? fmt::format(" at [{}]", fmt::join(index, ", ")) : "");
}

void mark(html::Node& node, const ComparedTensor& tensor) {
  const auto rank = [](const std::string& kind) {
    const std::vector<html::Kind> all = verify_kinds();
    std::size_t place = 0;
    while (place < all.size() && all[place].key != kind) ++place;
    return kind.empty() ? 0 : place + 1;
  };
  const std::string kind = kind_of(tensor);
  if (rank(kind) < rank(node.kind)) return;  // the worst of several outputs determines the kind
  node.kind = kind;
  node.reason = reason_of(tensor);
  node.facts = {{"tensor", name_of(tensor)},
                {"largest difference", at(tensor.difference.worst_absolute(), tensor.difference.max_absolute_at)},
                {"relative", at(tensor.difference.worst_relative(), tensor.difference.max_relative_at)},
                {"share of the tolerance", fmt::format("{:.3g}", tensor.difference.excess)},
                {"allowed", tolerance_text(tensor.tolerance)}};
  if (tensor.difference.cosine) node.facts.push_back({"cosine", fmt::format("{:.9f}", *tensor.difference.cosine)});
  if (tensor.floor) node.facts.push_back({"noise floor", tensor.floor->text});
  node.facts.insert(node.facts.end(), tensor.facts.begin(), tensor.facts.end());
}

/// Adds the first divergence as a problem, or else the first few tensors that differ. `places` has the drawn node of
/// each tensor, or nothing if no node is drawn for it.
void add_problems(html::Report& page, const std::vector<ComparedTensor>& tensors,
                  const std::vector<std::optional<html::Place>>& places) {
  constexpr std::size_t few = 4;
  const bool has_first =
      std::any_of(tensors.begin(), tensors.end(), [](const auto& tensor) { return tensor.is_first; });
  std::size_t differing = 0;
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    const std::string kind = kind_of(tensors[i]);
    if (kind != differs && kind != first) continue;
    ++differing;
    if (has_first ? kind != first : differing > few) continue;
    html::Problem problem{.title = name_of(tensors[i]),
                          .kind = kind,
                          .reason = reason_of(tensors[i]),
                          .advice = kind == first ? "look at this node first: its inputs are correct" : ""};
    if (places[i]) problem.nodes.push_back(*places[i]);
    page.problems.push_back(std::move(problem));
  }
  if (page.problems.empty() || page.problems.size() == differing) return;
  page.problems.back().reason +=
      fmt::format("; {} of {} differ, and the table has all of them", differing, count_text(tensors.size(), "tensor"));
}

html::Histogram histogram_of(const std::vector<ComparedTensor>& tensors) {
  std::vector<double> shares;
  for (const ComparedTensor& tensor : tensors) {
    if (tensor.difference.incomparable.empty()) shares.push_back(tensor.difference.excess);
  }
  html::Histogram histogram = html::histogram_of(shares);
  histogram.title = "Errors";
  histogram.note = "Number of tensors by largest error, relative to the tolerance.";
  histogram.axis = "error / allowed";
  histogram.counted = "tensors";
  return histogram;
}

/// Returns the histogram of the errors in one tensor.
html::Histogram histogram_of(const ComparedTensor& tensor) {
  return {.title = fmt::format("Errors in {}", name_of(tensor)),
          .note = "Number of elements by error, relative to the largest value of the reference.",
          .axis = "error / largest",
          .counted = "elements",
          .bins = tensor.errors};
}

html::Table table_of(const std::vector<ComparedTensor>& tensors,
                     const std::vector<std::optional<html::Place>>& places) {
  html::Table table{
      .title = "Tensors",
      .columns = {{"tensor", Type::code},
                  {"node", Type::node, "the node of the candidate that computes it"},
                  {"verdict", Type::kind},
                  {"type", Type::code},
                  {"max abs", Type::number, "the largest difference"},
                  {"max rel", Type::number, "the largest difference divided by the reference there"},
                  {"of allowed", Type::number, "the largest error divided by the tolerance of its element"},
                  {"differ", Type::number, "elements outside the tolerance"},
                  {"cosine", Type::number},
                  {"SNR, dB", Type::number, "signal-to-noise ratio in dB"},
                  {"found", Type::text}}};
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    const ComparedTensor& tensor = tensors[i];
    const report::Difference& difference = tensor.difference;
    const bool compared = difference.incomparable.empty();
    const auto figure = [&](double value) { return compared ? html::Cell(value) : html::Cell(); };
    table.rows.push_back({name_of(tensor), node_cell(places[i], ""), kind_of(tensor), tensor.type,
                          figure(difference.worst_absolute()), figure(difference.worst_relative()),
                          figure(difference.excess), figure(static_cast<double>(difference.mismatched)),
                          html::cell_of(difference.cosine), html::cell_of(tensor.snr_db), reason_of(tensor)});
  }
  return table;
}

}  // namespace

std::string tolerance_text(const report::Tolerance& tolerance) {
  if (tolerance.snr_db) return fmt::format("an SNR of {:.3g} dB", *tolerance.snr_db);
  std::string text = fmt::format("relative {:.2g}", tolerance.relative);
  if (tolerance.of_largest != 0) {
    text += fmt::format(" + {:.2g} of the largest element of the {}", tolerance.of_largest,
                        tolerance.by_slice ? "slice" : "tensor");
  }
  if (tolerance.absolute != 0) text += fmt::format(" + absolute {:.2g}", tolerance.absolute);
  if (tolerance.least_snr_db) text += fmt::format(", and an SNR of at least {:.3g} dB", *tolerance.least_snr_db);
  return text;
}

std::string allowed_text(const report::Tolerance& tolerance) {
  return "allowed: " + tolerance_text(tolerance) + (tolerance.why.empty() ? "" : ", since " + tolerance.why);
}

std::vector<ComparedTensor> tensors_of(const report::VerifyReport& report) {
  std::vector<ComparedTensor> tensors;
  for (const report::ComparedOutput& output : report.outputs) {
    tensors.push_back({.reference = output.reference.name,
                       .candidate = output.candidate.name,
                       .type = output.candidate.type,
                       .tolerance = output.tolerance,
                       .difference = output.worst,
                       .floor = output.floor,
                       .is_equal = output.equal(),
                       .is_first = false,
                       .is_reordered = false,
                       .diagnosis = {},
                       .not_compared = output.not_compared,
                       .facts = {}});
  }
  return tensors;
}

html::Report new_comparison_page(const report::ComparedModels& models, const std::string& verdict) {
  html::Report page = new_model_report("verify", models.candidate_file);
  page.summary.push_back({"reference", models.reference_file});
  const std::string result = fmt::format("{} on {}", verdict, count_text(models.runs, "run"));
  page.summary.push_back({"result", result});
  page.verdict = fmt::format("The networks are {}.", result);
  for (const std::string& input : models.inputs) page.summary.push_back({"input", input});
  if (!models.ran_in.empty()) page.summary.push_back({"CPU engine", models.ran_in});
  for (const std::string& line : models.left_out) page.summary.push_back({"CPU engine", line});
  for (const std::string& line : definition_lines(models)) page.summary.push_back({"definition", line});
  return page;
}

void add_comparison(html::Report& page, const toolkit::Model& candidate, const std::vector<ComparedTensor>& tensors,
                    const std::vector<std::string>& problems) {
  page.kinds = verify_kinds();
  const html::ModelPlaces drawn_at = html::add_graphs(page, candidate.with_inferred_shapes().graph(), "candidate");
  std::vector<std::optional<html::Place>> places;
  for (const ComparedTensor& tensor : tensors) {
    const auto [begin, end] = drawn_at.tensors.equal_range(tensor.candidate);
    places.push_back(begin == end ? std::nullopt : std::optional(begin->second));
    for (auto each = begin; each != end; ++each) {
      mark(page.graphs[each->second.graph].nodes[each->second.node], tensor);
    }
  }
  add_problems(page, tensors, places);
  for (const std::string& problem : problems) {
    page.problems.push_back({.title = "Not compared", .kind = {}, .reason = problem, .advice = {}});
  }
  if (!problems.empty()) {
    html::Table table{.title = "Why outputs were not compared", .columns = {{"problem", Type::text}}};
    for (const std::string& problem : problems) table.rows.push_back({problem});
    page.sections.emplace_back(std::move(table));
  }
  page.sections.emplace_back(histogram_of(tensors));
  for (const ComparedTensor& tensor : tensors) {
    if (!tensor.errors.empty()) page.sections.emplace_back(histogram_of(tensor));
  }
  page.sections.emplace_back(table_of(tensors, places));
}

html::Report verify_page(const toolkit::VerifyResult& result) {
  html::Report page = new_comparison_page(result, models_verdict_text(result));
  page.summary.push_back({"compared", "the outputs; with --layers every tensor"});
  add_comparison(page, result.candidate, tensors_of(result), result.problems);
  return page;
}

}  // namespace graft::present

// Writes a comparison tensor by tensor as lines and tables.
#include "present/text/layers_text.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <numeric>
#include <utility>

#include "core/comparison_text.hpp"
#include "core/shell_quoted.hpp"
#include "present/html/layers_page.hpp"
#include "present/text/next_steps_text.hpp"
#include "present/text/verify_text.hpp"

namespace graft::present {
namespace {

std::string name_of(const report::ComparedLayer& layer) {
  const std::string& reference = layer.reference.name;
  const std::string& candidate = layer.candidate.name;
  return reference == candidate ? candidate : fmt::format("{} / {}", reference, candidate);
}

Cell verdict_of(const report::LayersReport& report, std::size_t index) {
  const report::ComparedLayer& layer = report.layers[index];
  if (!layer.not_compared.empty()) return {"not compared", Color::caution};
  if (report.first && report.first->layer == index) return {"first", Color::bad};
  if (layer.verdict() != report::Verdict::same) return verdict_cell(layer.verdict());
  if (layer.layout) return {"reordered", Color::caution};
  return verdict_cell(report::Verdict::same);
}

void add_row(Table& table, const report::LayersReport& report, std::size_t index) {
  const report::ComparedLayer& layer = report.layers[index];
  const report::Difference& difference = layer.difference;
  const std::string name = name_of(layer);
  constexpr std::size_t longest = 48;
  if (!layer.not_compared.empty()) {
    table.add({verdict_of(report, index),
               {shortened(name, longest), Color::strong},
               layer.op,
               "",
               "-",
               "-",
               "-",
               "-",
               layer.not_compared});
    return;
  }
  if (!difference.incomparable.empty()) {
    table.add({verdict_of(report, index),
               {shortened(name, longest), Color::strong},
               layer.op,
               layer.reference.type,
               "-",
               "-",
               "-",
               "-",
               difference.incomparable});
    return;
  }
  std::string range = report::range_text(layer.candidate_range);
  const std::string rounding = layer.rounding ? report::rounding_text(*layer.rounding) : "";
  const std::string noise = layer.floor && difference.within_noise != 0
                                ? fmt::format("{} within the noise floor", difference.within_noise)
                                : "";
  for (const std::string& more : {rounding, layer.diagnosis, noise}) {
    if (!more.empty()) range += "; " + more;
  }
  table.add({verdict_of(report, index),
             {shortened(name, longest), Color::strong},
             layer.op,
             layer.candidate.type,
             fmt::format("{:.2g}", difference.worst_absolute()),
             fmt::format("{:.2g}", difference.worst_relative()),
             difference.cosine ? fmt::format("{:.7f}", *difference.cosine) : "-",
             decibels_text(layer),
             range});
}

/// Returns the indices of the layers that are shown: all layers if there are at most 40 or if `verbose`; otherwise the
/// outputs and the layers near the first divergence, or, if no layer differs, the layers with the largest errors.
std::vector<std::size_t> rows_to_show(const report::LayersReport& report, bool verbose) {
  constexpr std::size_t few = 40;
  constexpr std::size_t before = 5;
  constexpr std::size_t after = 15;
  const std::size_t count = report.layers.size();
  std::size_t center = count;
  for (std::size_t i = count; i-- > 0;) {
    if (!report.layers[i].equal()) center = i;
  }
  if (report.first) center = report.first->layer;
  std::vector<std::size_t> by_error(count);
  std::iota(by_error.begin(), by_error.end(), std::size_t{0});
  std::stable_sort(by_error.begin(), by_error.end(), [&](std::size_t a, std::size_t b) {
    return report.layers[a].difference.excess > report.layers[b].difference.excess;
  });
  by_error.resize(std::min(by_error.size(), after));
  std::vector<std::size_t> rows;
  for (std::size_t i = 0; i < count; ++i) {
    const bool near = center == count ? std::find(by_error.begin(), by_error.end(), i) != by_error.end()
                                      : i + before >= center && i <= center + after;
    if (verbose || count <= few || near || report.layers[i].is_output) rows.push_back(i);
  }
  return rows;
}

void add_nodes(Table& table, const char* what, const std::vector<NodeRef>& nodes) {
  constexpr std::size_t few = 6;
  const std::size_t shown = std::min(few, nodes.size());
  std::string last;
  for (std::size_t i = nodes.size() - shown; i < nodes.size(); ++i) {
    last += (last.empty() ? "" : ", ") + describe(nodes[i]);
  }
  table.add({{what, Color::faint},
             fmt::format("{}{}", nodes.size() > shown ? fmt::format("{} nodes, the last of them ", nodes.size()) : "",
                         last)});
}

void add_first(Listing& text, const report::LayersReport& report) {
  const report::ComparedLayer* different = report.first_different();
  if (!report.first && different == nullptr) {
    const auto compared = static_cast<std::size_t>(
        std::count_if(report.layers.begin(), report.layers.end(), [](const report::ComparedLayer& layer) {
          const bool has_numbers = layer.compared != 0 || layer.difference.count == 0;
          return layer.not_compared.empty() && has_numbers && layer.verdict() != report::Verdict::nothing_compared;
        }));
    const std::size_t others = report.layers.size() - compared;
    text.add({{"no tensor differs", others == 0 ? Color::good : Color::caution},
              fmt::format(" on these inputs: {} compared{}", count_text(compared, "tensor"),
                          others == 0 ? "" : fmt::format(", {} not compared", count_text(others, "tensor")))});
    return;
  }
  if (!report.first) {
    text.add({{"no first divergence", Color::caution},
              fmt::format(": each node computes the same as the reference if both read the reference's inputs; the "
                          "errors accumulate and first exceed the tolerance in '{}'",
                          name_of(*different))});
    return;
  }
  const report::ComparedLayer& layer = report.layers[report.first->layer];
  text.add(
      {{"first divergence", Color::bad}, fmt::format(": '{}', by {}", name_of(layer), describe(layer.candidate_node))});
  Table table;
  table.add({{"with the inputs of the reference", Color::faint}, report.first->why});
  for (const std::string& difference : difference_texts(*report.first)) {
    table.add({{"differs in", Color::faint}, difference});
  }
  add_nodes(table, "in the candidate", layer.candidate_nodes);
  add_nodes(table, "in the reference", layer.reference_nodes);
  text.add(std::move(table));
}

void add_nan(Listing& text, const report::LayersReport& report) {
  if (!report.nan_begins) return;
  const report::ComparedLayer& layer = report.layers[*report.nan_begins];
  text.add({{"NaN begins", Color::bad},
            fmt::format(": '{}', by {}: {} elements of the reference and {} of the candidate are NaN, of {} elements, "
                        "computed from tensors without NaN",
                        name_of(layer), describe(layer.candidate_node), layer.reference_range.nan,
                        layer.candidate_range.nan, layer.reference_range.count)});
}

Listing failure_text(const report::Failure& failure) {
  Listing text;
  text.add(
      {{"the candidate does not run", Color::bad},
       fmt::format(": {}",
                   failure.node
                       ? describe(*failure.node)
                       : "the error cannot be attributed to a node, because no part of the model fails by itself")});
  Table table;
  table.add({{"why", Color::faint}, failure.message});
  if (!failure.nodes.empty()) add_nodes(table, "fails with", failure.nodes);
  text.add(std::move(table));
  return text;
}

/// Adds the effects of the emulated type: constants and the first tensor beyond its range, and the layer that loses the
/// most signal.
void add_losses(Listing& text, const report::LayersReport& report) {
  const Cell beyond("beyond the range of the type", Color::bad);
  for (const report::LargeConstant& constant : report.large_constants) {
    text.add({beyond, fmt::format(": the constant '{}' that {} reads: {} of {} elements, up to {:.4g}", constant.name,
                                  describe(constant.node), constant.overflow, constant.elements, constant.largest)});
  }
  std::size_t overflowing = 0;
  const report::ComparedLayer* first = nullptr;
  bool emulated = false;
  for (const report::ComparedLayer& layer : report.layers) {
    emulated = emulated || layer.rounding.has_value();
    if (!layer.rounding || layer.rounding->overflow == 0) continue;
    if (overflowing++ == 0) first = &layer;
  }
  if (first != nullptr) {
    text.add({beyond,
              fmt::format(": {}, first '{}' by {}: {} of {} elements, up to {:.4g}", count_text(overflowing, "tensor"),
                          first->candidate.name, describe(first->candidate_node), first->rounding->overflow,
                          first->reference_range.count, first->reference_range.largest())});
  }
  if (emulated && report.weakest) {
    const report::ComparedLayer& layer = report.layers[*report.weakest];
    text.add({{"loses most signal", Color::caution},
              fmt::format(": '{}' by {}: its SNR is {:.1f} dB below that of the node's inputs", layer.candidate.name,
                          describe(layer.candidate_node), *layer.snr_lost_db)});
  }
}

/// Adds the tensors that were not compared, with one line for each reason.
void add_not_compared(Listing& text, const report::LayersReport& report) {
  std::map<std::string, std::vector<std::string>> names;
  for (const report::ComparedLayer& layer : report.layers) {
    if (!layer.not_compared.empty()) names[layer.not_compared].push_back(name_of(layer));
  }
  for (const auto& [why, tensors] : names) {
    text.add({{"not compared", Color::caution},
              fmt::format(": {}, for example '{}': {}", count_text(tensors.size(), "tensor"), tensors.front(), why)});
  }
}

/// Adds the tolerances that differ from the tolerance of the tensor's own type, with the number of tensors.
void add_tolerances(Listing& text, const report::LayersReport& report) {
  std::map<std::string, std::size_t> counts;
  for (const report::ComparedLayer& layer : report.layers) {
    if (!layer.tolerance.why.empty()) ++counts[allowed_text(layer.tolerance)];
  }
  for (const auto& [allowed, count] : counts) {
    text.add(fmt::format("{} ({})", allowed, count_text(count, "tensor")), Color::faint);
  }
}

}  // namespace

std::vector<std::string> difference_texts(const report::Divergence& first) {
  if (!first.differences) return {};
  if (first.differences->empty()) return {"nothing: operator, attributes and constants are the same in both files"};
  constexpr std::size_t few = 6;
  std::vector<std::string> texts;  // Several outputs of a node may differ in the same way.
  for (const std::string& text : *first.differences) {
    if (std::find(texts.begin(), texts.end(), text) == texts.end()) texts.push_back(text);
  }
  if (texts.size() <= few) return texts;
  const std::size_t more = texts.size() - few;
  texts.resize(few);
  texts.push_back(fmt::format("{} more differences: --json has all differences", more));
  return texts;
}

std::string decibels_text(const report::ComparedLayer& layer) {
  return layer.error.snr_db ? fmt::format("{:.1f} dB", *layer.error.snr_db) : "-";
}

std::string first_divergence_text(const report::LayersReport& report) {
  if (!report.first) return "";
  const report::ComparedLayer& layer = report.layers[report.first->layer];
  return fmt::format("'{}', by {}: {}", name_of(layer), describe(layer.candidate_node), report.first->why);
}

std::string hidden_difference_text(const report::LayersReport& report) {
  const report::ComparedLayer* different = report.first_different();
  if (report.verdict() != report::Verdict::same || different == nullptr) return "";
  const report::ComparedLayer& first = report.first ? report.layers[report.first->layer] : *different;
  const auto count = static_cast<std::size_t>(std::count_if(
      report.layers.begin(), report.layers.end(), [](const report::ComparedLayer& layer) { return !layer.equal(); }));
  return fmt::format(
      "the outputs are the same, so the exit code is 0; {} inside the network differ{}, first '{}' by {}",
      count_text(count, "tensor"), count == 1 ? "s" : "", name_of(first), describe(first.candidate_node));
}

Listing layers_text(const report::LayersReport& report, bool verbose) {
  if (report.failure) return failure_text(*report.failure);
  Listing text;
  if (report.dispute) text.append(dispute_text(*report.dispute));
  text.add(fmt::format("{} on {} ({})", count_text(report.layers.size(), "tensor"), count_text(report.runs, "run"),
                       fmt::join(report.inputs, ", ")));
  add_nan(text, report);
  add_first(text, report);
  add_losses(text, report);
  Table table;
  const auto faint = [](const char* title) { return Cell(title, Color::faint); };
  table.add({faint(""), faint("tensor"), faint("operator"), faint("candidate"), faint("max abs"), faint("max rel"),
             faint("cosine"), faint("SNR"), faint("range in the candidate")});
  const std::vector<std::size_t> rows = rows_to_show(report, verbose);
  for (const std::size_t row : rows) add_row(table, report, row);
  text.add(std::move(table));
  if (rows.size() < report.layers.size()) {
    text.add(fmt::format("{} more: -v lists them, --json has all figures",
                         count_text(report.layers.size() - rows.size(), "tensor")));
  }
  add_tolerances(text, report);
  add_not_compared(text, report);
  for (const std::string& problem : report.problems) text.add({{"differs", Color::bad}, ": " + problem});
  return text;
}

std::vector<std::string> layers_warnings(const report::LayersReport& report) {
  const bool has_data = report.has_data;
  std::vector<std::string> warnings = noise_warnings(tensors_of(report), report.ran_in, has_data);
  for (std::string& warning : calibration_warnings(report.verdict(), report.is_quantized_candidate, has_data)) {
    warnings.push_back(std::move(warning));
  }
  for (const report::ComparedLayer& layer : report.layers) {
    if (layer.verdict() == report::Verdict::nothing_compared) {
      warnings.push_back(nothing_compared_warning(layer.reference.name, layer.not_compared, layer.is_lost_in_noise(),
                                                  report.runs == 1 && layer.difference.count == 0, layer.difference,
                                                  has_data));
    }
  }
  for (std::string& warning : unreached_warnings(report.unreached, has_data)) warnings.push_back(std::move(warning));
  for (std::string& warning : kernel_warnings(report.without_own_kernels)) warnings.push_back(std::move(warning));
  if (std::string hidden = hidden_difference_text(report); !hidden.empty()) warnings.push_back(std::move(hidden));
  return warnings;
}

std::string reduced_command(const report::ReducedFiles& files, const std::string& options) {
  if (!files.reference.empty()) {
    return fmt::format("graft verify {} {} --layers{}{}{}", shell_path(files.reference), shell_path(files.candidate),
                       files.inputs.empty() ? "" : " --data " + shell_path(files.inputs), options, library_options());
  }
  const std::string results = std::filesystem::path(files.candidate).replace_extension(".result.npz").string();
  return fmt::format("graft run {}{} -o {}{}{}", shell_path(files.candidate),
                     files.inputs.empty() ? "" : " --input " + shell_path(files.inputs), shell_path(results), options,
                     library_options());
}

}  // namespace graft::present

// Tables and JSON of a comparison tensor by tensor, and the files of a reduced case.
#include "cli/verify_layers.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <map>
#include <numeric>

#include "cli/json_values.hpp"
#include "cli/tensors.hpp"
#include "graft/error.hpp"
#include "graph/onnx_io.hpp"

namespace graft::cli {
namespace {

constexpr std::string_view schema = "graft.verify.layers";
constexpr int schema_version = 2;

Json to_json(const TensorRange& range) {
  return {{"lowest", number(range.lowest)},
          {"highest", number(range.highest)},
          {"nan", range.nan},
          {"infinite", range.infinite},
          {"zeros", range.zeros}};
}

Json to_json(const Difference& difference) {
  return {{"elements", difference.count},
          {"mismatched", difference.mismatched},
          {"within_noise", difference.within_noise},
          {"max_absolute", number(difference.worst_absolute())},
          {"max_absolute_at", difference.max_absolute_at},
          {"max_relative", number(difference.worst_relative())},
          {"max_relative_at", difference.max_relative_at},
          {"excess", number(difference.excess)},
          {"cosine", number(difference.cosine)},
          {"nan_disagreements", difference.nan_disagreements},
          {"infinity_disagreements", difference.infinity_disagreements},
          {"first_index", difference.first_index},
          {"selection", cli::to_json(difference.selection)},
          {"incomparable", difference.incomparable}};
}

Json to_json(const RoundingEffect& effect) {
  return {{"overflow", effect.overflow},
          {"saturated", effect.saturated},
          {"underflow", effect.underflow},
          {"subnormal", effect.subnormal},
          {"snr_db", number(effect.snr_db)}};
}

Json to_json(const LayerComparison& layer) {
  Json histogram = Json::object();
  for (std::size_t i = 0; i < layer.error.histogram.counts.size(); ++i) {
    histogram[std::string(ErrorHistogram::names.at(i))] = layer.error.histogram.counts.at(i);
  }
  Json json = {{"reference", layer.reference},
               {"candidate", layer.candidate},
               {"matched_by", to_string(layer.matched_by)},
               {"op", layer.op},
               {"reference_node", name_in(layer.reference_node)},
               {"candidate_node", name_in(layer.candidate_node)},
               {"reference_nodes", names_in(layer.reference_nodes)},
               {"candidate_nodes", names_in(layer.candidate_nodes)},
               {"is_output", layer.is_output},
               {"reference_type", layer.reference_type},
               {"candidate_type", layer.candidate_type},
               {"equal", layer.verdict() == Verdict::same},
               {"compared", layer.compared},
               {"failed_runs", layer.failed_runs},
               {"worst_run", layer.worst_run},
               {"tolerance",
                {{"relative", layer.tolerance.relative},
                 {"absolute", layer.tolerance.absolute},
                 {"of_largest", layer.tolerance.of_largest},
                 {"by_slice", layer.tolerance.by_slice},
                 {"snr_db", number(layer.tolerance.snr_db)},
                 {"why", layer.why_tolerance}}}};
  json.update(to_json(layer.difference));
  json["noise_floor"] = cli::to_json(layer.floor);
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
               {"local", layer.local ? to_json(*layer.local) : Json()}});
  return json;
}

std::string name_of(const LayerComparison& layer) {
  return layer.reference == layer.candidate ? layer.candidate
                                            : fmt::format("{} / {}", layer.reference, layer.candidate);
}

Cell verdict_of(const LayerReport& report, std::size_t index) {
  const LayerComparison& layer = report.layers[index];
  if (!layer.not_compared.empty()) return {"not compared", Color::caution};
  if (report.first && report.first->layer == index) return {"first", Color::bad};
  if (layer.verdict() != Verdict::same) return verdict_cell(layer.verdict());
  if (layer.layout) return {"other order", Color::caution};
  return verdict_cell(Verdict::same);
}

std::string decibels(const LayerComparison& layer) {
  return layer.error.snr_db ? fmt::format("{:.1f} dB", *layer.error.snr_db) : "-";
}

void add_row(Table& table, const LayerReport& report, std::size_t index) {
  const LayerComparison& layer = report.layers[index];
  const Difference& difference = layer.difference;
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
               layer.reference_type,
               "-",
               "-",
               "-",
               "-",
               difference.incomparable});
    return;
  }
  std::string range = layer.candidate_range.to_string();
  const std::string rounding = layer.rounding ? layer.rounding->to_string() : "";
  const std::string noise = layer.floor && difference.within_noise != 0
                                ? fmt::format("{} within the noise floor", difference.within_noise)
                                : "";
  for (const std::string& more : {rounding, layer.diagnosis, noise}) {
    if (!more.empty()) range += "; " + more;
  }
  table.add({verdict_of(report, index),
             {shortened(name, longest), Color::strong},
             layer.op,
             layer.candidate_type,
             fmt::format("{:.2g}", difference.worst_absolute()),
             fmt::format("{:.2g}", difference.worst_relative()),
             difference.cosine ? fmt::format("{:.7f}", *difference.cosine) : "-",
             decibels(layer),
             range});
}

/// All of them where they are few or where it was asked for; otherwise those round the first that differs, or those
/// that come nearest to it; and the outputs.
std::vector<std::size_t> rows_to_show(const Console& console, const LayerReport& report) {
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
    if (console.verbose || count <= few || near || report.layers[i].is_output) rows.push_back(i);
  }
  return rows;
}

void say_nodes(Table& table, const char* what, const std::vector<std::string>& nodes) {
  constexpr std::size_t few = 6;
  const std::size_t shown = std::min(few, nodes.size());
  const std::vector<std::string> last(nodes.end() - static_cast<std::ptrdiff_t>(shown), nodes.end());
  table.add({{what, Color::faint},
             fmt::format("{}{}", nodes.size() > shown ? fmt::format("{} nodes, the last of them ", nodes.size()) : "",
                         fmt::join(last, ", "))});
}

/// What the nodes have that is another, in words; empty where that is not known.
std::vector<std::string> differences_of(const Divergence& first) {
  if (!first.differences) return {};
  if (first.differences->empty()) return {"nothing: operator, attributes and constants are the same in both files"};
  constexpr std::size_t few = 6;
  std::vector<std::string> texts = *first.differences;
  if (texts.size() <= few) return texts;
  const std::size_t more = texts.size() - few;
  texts.resize(few);
  texts.push_back(fmt::format("{} more: --json has them", more));
  return texts;
}

void say_first(const Console& console, const LayerReport& report) {
  const LayerComparison* different = report.first_different();
  if (!report.first && different == nullptr) {
    const auto compared = std::count_if(report.layers.begin(), report.layers.end(),
                                        [](const LayerComparison& layer) { return layer.not_compared.empty(); });
    console.say(fmt::format("{}: {} compared", console.paint("no tensor differs", Color::good),
                            count_text(static_cast<std::size_t>(compared), "tensor")));
    return;
  }
  if (!report.first) {
    console.say(fmt::format(
        "{}: no node gives another result than the reference's where it is given the reference's inputs; the errors of "
        "many add up, and are above the tolerance first in '{}'",
        console.paint("no first divergence", Color::caution), name_of(*different)));
    return;
  }
  const LayerComparison& layer = report.layers[report.first->layer];
  console.say(fmt::format("{}: '{}', by {}", console.paint("first divergence", Color::bad), name_of(layer),
                          layer.candidate_node));
  Table table;
  table.add({{"given the reference's inputs", Color::faint}, report.first->why});
  for (const std::string& text : differences_of(*report.first)) table.add({{"differs in", Color::faint}, text});
  say_nodes(table, "in the candidate", layer.candidate_nodes);
  say_nodes(table, "in the reference", layer.reference_nodes);
  console.say(table);
}

void say_nan(const Console& console, const LayerReport& report) {
  if (!report.nan_begins) return;
  const LayerComparison& layer = report.layers[*report.nan_begins];
  console.say(
      fmt::format("{}: '{}', by {}: {} in the reference and {} in the candidate of {} elements, made of tensors "
                  "without NaN",
                  console.paint("NaN begins", Color::bad), name_of(layer), layer.candidate_node,
                  layer.reference_range.nan, layer.candidate_range.nan, layer.reference_range.count));
}

void say_failure(const Console& console, const Failure& failure) {
  console.say(fmt::format("{}: {}", console.paint("the candidate does not run", Color::bad),
                          failure.node.empty() ? "no node of it fails by itself" : failure.node));
  Table table;
  table.add({{"why", Color::faint}, failure.message});
  if (!failure.nodes.empty()) say_nodes(table, "fails with", failure.nodes);
  console.say(table);
}

/// What the emulated type does: the first tensor that is beyond its range, and the layer that loses most.
void say_losses(const Console& console, const LayerReport& report) {
  for (const LargeConstant& constant : report.large_constants) {
    console.say(fmt::format("{}: the constant '{}' that {} reads: {} of {} elements, up to {:.4g}",
                            console.paint("beyond the range of the type", Color::bad), constant.name, constant.node,
                            constant.overflow, constant.elements, constant.largest));
  }
  std::size_t overflowing = 0;
  const LayerComparison* first = nullptr;
  bool emulated = false;
  for (const LayerComparison& layer : report.layers) {
    emulated = emulated || layer.rounding.has_value();
    if (!layer.rounding || layer.rounding->overflow == 0) continue;
    if (overflowing++ == 0) first = &layer;
  }
  if (first != nullptr) {
    console.say(fmt::format("{}: {}, first '{}' by {}: {} of {} elements, up to {:.4g}",
                            console.paint("beyond the range of the type", Color::bad),
                            count_text(overflowing, "tensor"), first->candidate, first->candidate_node,
                            first->rounding->overflow, first->reference_range.count, first->reference_range.largest()));
  }
  if (emulated && report.weakest) {
    const LayerComparison& layer = report.layers[*report.weakest];
    console.say(fmt::format("{}: '{}' by {}, {:.1f} dB less signal to noise than what it is made of",
                            console.paint("loses most", Color::caution), layer.candidate, layer.candidate_node,
                            *layer.snr_lost_db));
  }
}

/// What cannot be looked at: those of one kind once.
void say_not_compared(const Console& console, const LayerReport& report) {
  std::map<std::string, std::vector<std::string>> names;
  for (const LayerComparison& layer : report.layers) {
    if (!layer.not_compared.empty()) names[layer.not_compared].push_back(name_of(layer));
  }
  for (const auto& [why, tensors] : names) {
    console.say(fmt::format("{}: {}, as '{}': {}", console.paint("not compared", Color::caution),
                            count_text(tensors.size(), "tensor"), tensors.front(), why));
  }
}

/// Those that are not of a tensor's own type.
void say_tolerances(const Console& console, const LayerReport& report) {
  std::map<std::string, std::size_t> counts;
  for (const LayerComparison& layer : report.layers) {
    if (!layer.why_tolerance.empty()) ++counts[allowed_text(layer.tolerance, layer.why_tolerance)];
  }
  for (const auto& [text, count] : counts) {
    console.say(console.paint(fmt::format("{} ({})", text, count_text(count, "tensor")), Color::faint));
  }
}

}  // namespace

Cell verdict_cell(Verdict verdict) {
  switch (verdict) {
    case Verdict::same: return {"same", Color::good};
    case Verdict::different: return {"differs", Color::bad};
    case Verdict::nothing_compared: return {"nothing compared", Color::caution};
  }
  return {};
}

Json to_json(const LayerReport& report) {
  Json constants = Json::array();
  for (const LargeConstant& constant : report.large_constants) {
    constants.push_back({{"name", constant.name},
                         {"node", name_in(constant.node)},
                         {"largest", number(constant.largest)},
                         {"overflow", constant.overflow},
                         {"elements", constant.elements}});
  }
  Json layers = Json::array();
  for (const LayerComparison& layer : report.layers) layers.push_back(to_json(layer));
  Json failure;
  if (report.failure) {
    failure = {{"node", name_in(report.failure->node)},
               {"nodes", names_in(report.failure->nodes)},
               {"message", report.failure->message}};
  }
  Json first;
  if (report.first) {
    const LayerComparison& layer = report.layers[report.first->layer];
    first = {{"layer", report.first->layer},
             {"reference", layer.reference},
             {"candidate", layer.candidate},
             {"op", layer.op},
             {"reference_node", name_in(layer.reference_node)},
             {"candidate_node", name_in(layer.candidate_node)},
             {"candidate_nodes", names_in(layer.candidate_nodes)},
             {"layout", report.first->order ? Json(to_string(*report.first->order)) : Json()},
             {"why", report.first->why},
             {"differences", report.first->differences ? Json(*report.first->differences) : Json()}};
  }
  return {{"schema", schema},
          {"version", schema_version},
          {"equal", report.verdict() == Verdict::same},
          {"nothing_compared", report.nothing_compared()},
          {"runs", report.runs},
          {"inputs", report.inputs},
          {"problems", report.problems},
          {"reference_tensors", report.reference_tensors},
          {"candidate_tensors", report.candidate_tensors},
          {"first_divergence", std::move(first)},
          {"nan_begins", report.nan_begins ? Json(report.layers[*report.nan_begins].candidate) : Json()},
          {"weakest", report.weakest ? Json(report.layers[*report.weakest].candidate) : Json()},
          {"failure", std::move(failure)},
          {"large_constants", std::move(constants)},
          {"layers", std::move(layers)}};
}

std::string first_divergence_text(const LayerReport& report) {
  if (!report.first) return "";
  const LayerComparison& layer = report.layers[report.first->layer];
  return fmt::format("'{}', by {}: {}", name_of(layer), layer.candidate_node, report.first->why);
}

std::string hidden_difference_text(const LayerReport& report) {
  const LayerComparison* different = report.first_different();
  if (!report.equal() || different == nullptr) return "";
  const LayerComparison& first = report.first ? report.layers[report.first->layer] : *different;
  const auto count = static_cast<std::size_t>(std::count_if(
      report.layers.begin(), report.layers.end(), [](const LayerComparison& layer) { return !layer.equal(); }));
  return fmt::format("the outputs are the same, so the exit code is 0; {} inside differ{}, first '{}' by {}",
                     count_text(count, "tensor"), count == 1 ? "s" : "", name_of(first), first.candidate_node);
}

std::vector<ComparedTensor> tensors_of(const LayerReport& report) {
  std::vector<ComparedTensor> tensors;
  for (std::size_t i = 0; i < report.layers.size(); ++i) {
    const LayerComparison& layer = report.layers[i];
    ComparedTensor& tensor = tensors.emplace_back();
    tensor.reference = layer.reference;
    tensor.candidate = layer.candidate;
    tensor.type = layer.candidate_type;
    tensor.tolerance = layer.tolerance;
    tensor.difference = layer.difference;
    tensor.floor = layer.floor;
    tensor.is_equal = layer.equal();
    tensor.diagnosis = layer.diagnosis;
    tensor.not_compared = layer.not_compared;
    tensor.is_first = report.first && report.first->layer == i;
    tensor.is_reordered = layer.layout.has_value();
    if (tensor.is_first) tensor.diagnosis = report.first->why;
    tensor.snr_db = layer.error.snr_db;
    tensor.facts = {{"signal to noise", decibels(layer)},
                    {"range in the reference", layer.reference_range.to_string()},
                    {"range in the candidate", layer.candidate_range.to_string()}};
    if (layer.rounding && !layer.rounding->to_string().empty())
      tensor.facts.push_back({"in the emulated type", layer.rounding->to_string()});
    if (layer.snr_lost_db)
      tensor.facts.push_back({"signal to noise lost", fmt::format("{:.1f} dB", *layer.snr_lost_db)});
    if (layer.local) tensor.facts.push_back({"given the reference's inputs", layer.local->to_string()});
    if (tensor.is_first) {
      for (const std::string& text : differences_of(*report.first)) tensor.facts.push_back({"differs in", text});
    }
    if (!tensor.is_first && !layer.is_output) continue;
    for (std::size_t bin = 0; bin < ErrorHistogram::names.size(); ++bin) {
      const auto count = static_cast<std::size_t>(layer.error.histogram.counts.at(bin));
      tensor.errors.push_back({std::string(ErrorHistogram::names.at(bin)), count, {}});
    }
    while (!tensor.errors.empty() && tensor.errors.back().count == 0) tensor.errors.pop_back();
  }
  return tensors;
}

void say(const Console& console, const LayerReport& report) {
  if (report.failure) {
    say_failure(console, *report.failure);
    return;
  }
  console.say(fmt::format("{} on {} ({})", count_text(report.layers.size(), "tensor"), count_text(report.runs, "run"),
                          fmt::join(report.inputs, ", ")));
  say_nan(console, report);
  say_first(console, report);
  say_losses(console, report);
  Table table;
  const auto faint = [](const char* text) { return Cell(text, Color::faint); };
  table.add({faint(""), faint("tensor"), faint("operator"), faint("candidate"), faint("max abs"), faint("max rel"),
             faint("cosine"), faint("SNR"), faint("range in the candidate")});
  const std::vector<std::size_t> rows = rows_to_show(console, report);
  for (const std::size_t row : rows) add_row(table, report, row);
  console.say(table);
  if (rows.size() < report.layers.size()) {
    console.say(fmt::format("{} more: -v shows them, --json all figures of each",
                            count_text(report.layers.size() - rows.size(), "tensor")));
  }
  say_tolerances(console, report);
  say_not_compared(console, report);
  for (const std::string& problem : report.problems) console.say(console.paint("differs", Color::bad) + ": " + problem);
}

ReducedFiles write_failure(const std::string& path, const Failure& failure, const std::string& options) {
  ReducedFiles files = reduced_files(path);
  files.reference.clear();
  write_onnx(failure.part, files.candidate);
  if (failure.inputs.empty()) {
    files.inputs.clear();
  } else {
    write_tensors(files.inputs, failure.inputs);
  }
  const std::string results = std::filesystem::path(path).replace_extension(".result.npz").string();
  files.command = fmt::format("graft run {}{} -o {}{}", files.candidate,
                              files.inputs.empty() ? "" : " --input " + files.inputs, results, options);
  return files;
}

std::vector<std::string> ReducedFiles::names() const {
  std::vector<std::string> names;
  for (const std::string& name : {candidate, reference, inputs}) {
    if (!name.empty()) names.push_back(name);
  }
  return names;
}

ReducedFiles reduced_files(const std::string& path) {
  std::filesystem::path name(path);
  if (name.extension() != ".onnx") {
    throw Error(fmt::format("--reduce {}: a reduced model is written as ONNX\nEnd the name in .onnx", path));
  }
  ReducedFiles files;
  files.candidate = path;
  files.reference = name.replace_extension(".reference.onnx").string();
  files.inputs = std::filesystem::path(path).replace_extension(".npz").string();
  return files;
}

ReducedFiles write_reduced(const std::string& path, const ReducedCase& reduced, const std::string& options) {
  ReducedFiles files = reduced_files(path);
  write_onnx(reduced.candidate, files.candidate);
  write_onnx(reduced.reference, files.reference);
  if (reduced.inputs.empty()) {
    files.inputs.clear();
  } else {
    write_tensors(files.inputs, reduced.inputs);
  }
  files.command = fmt::format("graft verify {} {} --layers{}{}", files.reference, files.candidate,
                              files.inputs.empty() ? "" : " --data " + files.inputs, options);
  return files;
}

}  // namespace graft::cli

// Nodes are found in the halves by their ids, which both halves keep.
#include "present/html/cut_page.hpp"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "present/html/model_graph.hpp"
#include "present/html/page.hpp"
#include "present/text/cut_text.hpp"

namespace graft::present {
namespace {

using html::Tone;
using Type = html::Column::Type;

constexpr const char* in_tensorrt = "in_tensorrt";
constexpr const char* on_host = "on_host";
constexpr const char* in_both = "in_both";
constexpr const char* cause_of_cut = "cause_of_cut";

std::vector<html::Kind> cut_kinds() {
  return {{.key = in_tensorrt,
           .mark = "T",
           .title = "in TensorRT",
           .meaning = "in the half that TensorRT runs",
           .tone = Tone::green,
           .is_problem = false},
          {.key = on_host,
           .mark = "H",
           .title = "on the host",
           .meaning = "in the half for ONNX Runtime",
           .tone = Tone::violet,
           .is_problem = false},
          {.key = in_both,
           .mark = "=",
           .title = "in both halves",
           .meaning = "computed only from constants and shapes",
           .tone = Tone::plain,
           .is_problem = false},
          {.key = cause_of_cut,
           .mark = "✕",
           .title = "cause of the cut",
           .meaning = "on the host, because TensorRT does not run it, or computes it wrongly",
           .tone = Tone::red,
           .is_problem = true}};
}

std::set<std::string> ids_of(const toolkit::Model& half) {
  std::set<std::string> ids;
  half.graph().for_each_node([&](const report::ModelNode& node) { ids.insert(node.ref.id); });
  return ids;
}

/// Maps the nodes of the whole network to kinds, by the halves that contain them and the causes of the cut.
class Marks {
 public:
  explicit Marks(const toolkit::CutResult& result)
      : tensorrt_(ids_of(result.tensorrt_model)), host_(ids_of(result.host_model)) {
    for (const toolkit::NodeSupport& cause : result.causes) causes_.insert(cause.node.id);
  }
  /// Returns the key of the node's kind, or an empty string for a node that no output needs.
  [[nodiscard]] std::string kind_of(const std::string& id) const {
    if (causes_.contains(id)) return cause_of_cut;
    const bool is_in_tensorrt = tensorrt_.contains(id);
    if (host_.contains(id)) return is_in_tensorrt ? in_both : on_host;
    return is_in_tensorrt ? in_tensorrt : "";
  }

 private:
  std::set<std::string> tensorrt_;
  std::set<std::string> host_;
  std::set<std::string> causes_;
};

html::Cell place_of(const std::multimap<std::string, html::Place, std::less<>>& places, const std::string& id,
                    const std::string& name) {
  const auto found = places.find(id);
  return node_cell(found == places.end() ? std::nullopt : std::optional(found->second), name);
}

html::Table causes_of(const toolkit::CutResult& result, const html::ModelPlaces& drawn) {
  html::Table table{.title = "Causes of the cut",
                    .columns = {{"node", Type::node},
                                {"operator", Type::code},
                                {"verdict", Type::text, "how TensorRT would run it"},
                                {"why", Type::text},
                                {"what to do", Type::text}}};
  for (const toolkit::NodeSupport& cause : result.causes) {
    table.rows.push_back({place_of(drawn.by_id, cause.node.id, cause.node.name), cause.node.op,
                          to_string(cause.support), cause.reason, cause.advice});
  }
  return table;
}

html::Table between_of(const toolkit::CutResult& result, const html::ModelPlaces& drawn) {
  html::Table table{.title = "Tensors from the first half to the second",
                    .columns = {{"tensor", Type::code}, {"type", Type::text}, {"computed by", Type::node}}};
  for (const toolkit::Port& port : result.between) {
    table.rows.push_back({port.name, type_text(port), place_of(drawn.tensors, port.name, "")});
  }
  return table;
}

html::Table tails_of(const toolkit::CutResult& result, const html::ModelPlaces& drawn) {
  html::Table table{.title = "Selection of detections on the host",
                    .columns = {{"node", Type::node}, {"what it does", Type::text}}};
  for (const toolkit::DetectionTail& tail : result.tails) {
    table.rows.push_back({place_of(drawn.by_id, tail.node.id, tail.node.name), tail_text(tail)});
  }
  return table;
}

html::Table outputs_of(const toolkit::VerifyResult& verified) {
  html::Table table{.title = "The halves compared with the whole network",
                    .columns = {{"output", Type::code},
                                {"verdict", Type::text},
                                {"largest difference", Type::number},
                                {"relative", Type::number},
                                {"elements outside the tolerance", Type::number},
                                {"SNR in dB", Type::number, "empty if nothing differs", true},
                                {"note", Type::text}}};
  for (const toolkit::ComparedOutput& output : verified.outputs) {
    table.rows.push_back({output.reference.name, to_string(output.verdict()), output.worst.worst_absolute(),
                          output.worst.worst_relative(), static_cast<double>(output.worst.mismatched),
                          html::cell_of(output.figures.snr_db), output.full_note()});
  }
  return table;
}

void add_summary(html::Report& page, const toolkit::CutResult& result) {
  page.summary.push_back({"two halves", cut_title(result)});
  std::vector<html::Fact> halves{{"TensorRT", tensorrt_text(result)}, {"the host", host_text(result)}};
  if (!result.tensorrt_is_first) std::swap(halves[0], halves[1]);
  page.summary.push_back({"first", halves[0].name + ": " + halves[0].text});
  page.summary.push_back({"then", halves[1].name + ": " + halves[1].text});
  if (const std::string text = verified_text(result); !text.empty()) page.summary.push_back({"verified", text});
  if (const std::string text = cut_warning(result); !text.empty()) page.summary.push_back({"not verified", text});
  if (!result.verified) return;
  for (const std::string& line : result.verified->left_out) page.summary.push_back({"CPU engine", line});
}

}  // namespace

void add_cut(html::Report& page, const toolkit::CutResult& result) {
  add_summary(page, result);
  for (html::Kind& kind : cut_kinds()) page.kinds.push_back(std::move(kind));
  const html::ModelPlaces drawn = html::add_graphs(page, result.model.with_inferred_shapes().graph(), "in two halves");
  const Marks marks(result);
  for (const auto& [id, place] : drawn.by_id) {
    page.graphs[place.graph].nodes[place.node].kind = marks.kind_of(id);
  }
  for (const toolkit::NodeSupport& cause : result.causes) {
    const auto [first, last] = drawn.by_id.equal_range(cause.node.id);
    html::Problem problem{.title = cause.op, .kind = cause_of_cut, .reason = cause.reason, .advice = cause.advice};
    for (auto each = first; each != last; ++each) {
      html::Node& node = page.graphs[each->second.graph].nodes[each->second.node];
      node.reason = cause.reason;
      node.advice = cause.advice;
      problem.nodes.push_back(each->second);
    }
    // The page of a conversion has the problem already, as a node that does not run.
    const bool is_known = std::ranges::any_of(page.problems, [&](const html::Problem& other) {
      return other.reason == problem.reason && other.advice == problem.advice;
    });
    if (!is_known) page.problems.push_back(std::move(problem));
  }
  std::vector<html::Table> tables{causes_of(result, drawn), between_of(result, drawn), tails_of(result, drawn)};
  if (result.verified) tables.push_back(outputs_of(*result.verified));
  for (html::Table& table : tables) {
    if (!table.rows.empty()) page.sections.emplace_back(std::move(table));
  }
}

html::Report cut_page(const toolkit::CutResult& result) {
  html::Report page = new_model_report("cut", result.model.source());
  add_ends(page, result.model.graph());
  add_cut(page, result);
  return page;
}

}  // namespace graft::present

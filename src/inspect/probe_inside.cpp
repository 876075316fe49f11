// Probes branches and bodies as models of their own.
#include <fmt/format.h>

#include <utility>

#include "graft/error.hpp"
#include "inspect/branch_model.hpp"
#include "inspect/model_parts.hpp"
#include "inspect/tensorrt_probe.hpp"
#include "onnx/faults.hpp"
#include "onnx/operator_node.hpp"

namespace graft::inspect {

std::optional<onnx::Model> TensorRTProbe::inside_of(const onnx::Node& node, std::size_t subgraph) const {
  auto model = branch_as_model(part_of(Nodes{&node}), node.name, subgraph);
  if (!model) return std::nullopt;
  infer_around_faults(*model, [](const onnx::Node&, const Error&) {});
  declare_outputs(*model);
  return model;
}

std::vector<Finding> TensorRTProbe::look_inside(Finding finding) {
  std::vector<Finding> findings;
  if (finding.nodes.size() == 1 && finding.inside == nullptr) {
    for (std::size_t i = 0; i < finding.nodes.front()->subgraphs().size(); ++i) {
      try {
        for (Finding& found : ask_inside(*finding.nodes.front(), i)) findings.push_back(std::move(found));
      } catch (const Error&) {  // the sub-graph needs unknown values, so it cannot be probed alone
        continue;
      }
    }
    if (findings.empty() && finding.outcome == Outcome::failed) findings = plugins_inside(finding);
  }
  if (findings.empty()) findings.push_back(std::move(finding));
  return findings;
}

std::vector<Finding> TensorRTProbe::plugins_inside(const Finding& finding) const {
  std::vector<Finding> findings;
  for (const onnx::Graph* body : finding.nodes.front()->subgraphs()) {
    body->for_each_node([&](const onnx::Node& inner) {
      const bool is_standard = onnx::is_standard_operator(inner.domain, inner.op_type);
      const nlohmann::json* creator = is_standard ? nullptr : creator_of(inner, trials_.creators());
      if (creator == nullptr || !report_.runs_inside.contains(&inner)) return;
      Finding& found = findings.emplace_back(finding);
      found.inside = &inner;
      found.cause = cause_in_body(*finding.nodes.front(), *creator, finding.words);
    });
  }
  return findings;
}

std::vector<Finding> TensorRTProbe::ask_inside(const onnx::Node& node, std::size_t subgraph) {
  auto model = inside_of(node, subgraph);
  if (!model) return {};
  SizeRanges ranges = ranges_;
  TensorRTProbe search(*model, trials_, ranges);
  ProbeReport report = search.run(Judge::builder);
  std::map<std::string, const onnx::Node*, std::less<>> own;  // keyed by the name, which a copy keeps
  node.subgraphs().at(subgraph)->for_each_node([&](const onnx::Node& inner) { own.emplace(inner.name, &inner); });
  const auto own_of = [&](const onnx::Node* copy) {
    const auto found = copy == nullptr ? own.end() : own.find(copy->name);
    return found == own.end() ? nullptr : found->second;
  };
  std::vector<Finding> findings;
  std::set<const onnx::Node*> bad;
  for (Finding& found : report.findings) {
    const onnx::Node* outermost = own_of(found.nodes.front());
    if (outermost == nullptr) return {};  // this node computes sizes for the branch
    const onnx::Node* innermost = own_of(found.inside);
    for (const onnx::Node* each : found.nodes) bad.insert(own_of(each));
    Finding& finding = findings.emplace_back();
    finding.nodes = {&node};
    finding.inside = innermost == nullptr ? outermost : innermost;
    finding.outcome = found.outcome;
    finding.words = found.words;
    if (found.nodes.size() > 1) finding.words += fmt::format(" ({} nodes fail together)", found.nodes.size());
    finding.cause = found.cause;
    finding.as = own_of(found.as);
    finding.ranges = found.ranges;
    finding.part = std::make_shared<const onnx::Model>(search.smallest_part(found));
  }
  for (const onnx::Node* copy : model->graph().nodes()) {
    const onnx::Node* inner = own_of(copy);
    const bool runs = inner != nullptr && !bad.contains(inner) && !report.not_asked.contains(copy);
    if (!runs) continue;
    report_.runs_inside.insert(inner);
    for (const onnx::Graph* innermost : inner->subgraphs()) {
      innermost->for_each_node([&](const onnx::Node& each) { report_.runs_inside.insert(&each); });
    }
  }
  for (const onnx::Node* copy : report.runs_inside) report_.runs_inside.insert(own_of(copy));
  for (auto& [layer, plugin] : report.plugins) report_.plugins[layer] = std::move(plugin);
  return findings;
}

/// Returns a separate model of the node `inside`, which is in a branch or body of `outer` at any depth, or nothing if
/// it cannot be extracted.
std::optional<onnx::Model> TensorRTProbe::alone(const onnx::Node& outer, const onnx::Node& inside) const {
  const std::vector<onnx::Graph*> subgraphs = outer.subgraphs();
  for (std::size_t i = 0; i < subgraphs.size(); ++i) {
    bool holds_it = false;
    subgraphs[i]->for_each_node([&](const onnx::Node& node) { holds_it = holds_it || &node == &inside; });
    auto model = holds_it ? inside_of(outer, i) : std::nullopt;
    if (!model) continue;
    const TensorRTProbe search(*model, trials_, ranges_);
    const onnx::Node* copy = model->graph().find_node(inside.name);
    if (copy != nullptr) return search.part_of(Nodes{copy});
    const auto is_it = [&](const onnx::Node& node) { return node.name == inside.name; };
    for (const onnx::Node* node : search.nodes_) {
      if (const onnx::Node* deeper = find_inside(*model, *node, is_it)) return search.alone(*node, *deeper);
    }
  }
  return std::nullopt;
}

}  // namespace graft::inspect

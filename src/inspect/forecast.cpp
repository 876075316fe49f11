// The report of the conversion names the original nodes by NodeRef, which maps them to the forecast.
#include "inspect/forecast.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <utility>

#include "graft/error.hpp"
#include "inspect/tensorrt_support.hpp"
#include "onnx/faults.hpp"
#include "onnx/functions.hpp"
#include "onnx/operator_node.hpp"
#include "onnx/origin_note.hpp"
#include "onnx/plugin_reason.hpp"
#include "passes/operator_fusion.hpp"
#include "passes/passes.hpp"
#include "rules/rule_passes.hpp"

namespace graft::inspect {
namespace {

/// Changes the domain of each node with a fault to one that no pass handles, so that the conversion ignores the node.
void hide_faults(onnx::Model& model) {
  model.graph().for_each_node([](onnx::Node& node) {
    if (node.metadata.contains(onnx::fault_note)) node.domain = onnx::fault_note;
  });
}

/// Returns the reasons why nodes of the converted model run as plugins, by the name of the node's first output.
std::map<std::string, std::string> plugin_reasons(const onnx::Model& converted) {
  std::map<std::string, std::string> reasons;
  converted.graph().for_each_node([&](const onnx::Node& node) {
    const auto reason = node.metadata.find(onnx::reason_note);
    if (reason != node.metadata.end() && node.output() != nullptr) reasons.emplace(node.output()->name, reason->second);
  });
  return reasons;
}

/// The nodes of a converted model that were copied out of a body, keyed by the name of the original output and the
/// operator.
using Copies = std::map<std::pair<std::string, std::string>, const onnx::Node*>;

Copies copies_in(const onnx::Model& converted) {
  Copies copies;
  converted.graph().for_each_node([&](const onnx::Node& node) {
    for (std::string& tensor : onnx::origin_of(node)) copies.emplace(std::pair(std::move(tensor), node.op_type), &node);
  });
  return copies;
}

/// Returns whether TensorRT runs a node of a body after the conversion has copied it out of the body. This is true if
/// later rewrites replaced the copy, or if no rule says that the copy fails. It is also true if the copy is outside all
/// bodies and runs as a plugin.
bool runs_as_copy(const NodeRef& node, const Copies& copies) {
  const auto copy = copies.find({node.id, node.op});
  if (copy == copies.end() || !fails_by_rule(*copy->second)) return true;
  const onnx::Node& made = *copy->second;
  return made.graph->parent() == nullptr && (is_adopted_for_tensorrt(made) || find_operator_for(made));
}

/// Returns whether a rewrite fuses several nodes into an operator: it was made by a fusion of Graft or of a loaded
/// library, or its result runs as a plugin.
bool is_fusion(const report::Rewrite& rewrite, const std::map<std::string, std::string>& plugins) {
  if (rewrite.nodes.size() < 2 || rewrite.nodes.front().op == "Loop" || rewrite.nodes.front().op == "Scan")
    return false;
  if (rewrite.pass == passes::library_pass) return true;
  const auto fusions = passes::operator_fusions();
  const auto is_of = [&](const passes::OperatorFusion* fusion) { return fusion->pass.name == rewrite.pass; };
  if (std::any_of(fusions.begin(), fusions.end(), is_of)) return true;
  return std::any_of(rewrite.nodes.begin(), rewrite.nodes.end(),
                     [&](const NodeRef& node) { return plugins.contains(node.id); });
}

/// Groups rewrites that share a node, as a union-find structure over their indices. A rewrite may replace the result of
/// an earlier one.
class JoinedRewrites {
 public:
  explicit JoinedRewrites(std::size_t count) : parents_(count) { std::iota(parents_.begin(), parents_.end(), 0); }

  [[nodiscard]] std::size_t root_of(std::size_t rewrite) {
    while (parents_[rewrite] != rewrite) {
      parents_[rewrite] = parents_[parents_[rewrite]];  // the next search is shorter
      rewrite = parents_[rewrite];
    }
    return rewrite;
  }
  void join(std::size_t a, std::size_t b) { parents_[root_of(a)] = root_of(b); }

 private:
  std::vector<std::size_t> parents_;
};

/// Returns the groups of nodes of `model` that `graft convert` fuses, in the order of the model. `plugins` is the
/// result of plugin_reasons().
std::vector<report::Fusion> fusions_of(const onnx::Model& model, const report::RewriteReport& report,
                                       const std::map<std::string, std::string>& plugins) {
  std::vector<const report::Rewrite*> rewrites;
  for (const report::Rewrite& rewrite : report.rewrites) {
    if (!report.is_cleanup(rewrite) && is_fusion(rewrite, plugins)) rewrites.push_back(&rewrite);
  }
  // The node that a rewrite adds has the id of the node whose output it computes.
  JoinedRewrites joined(rewrites.size());
  std::map<std::string, std::size_t> rewrite_at;
  for (std::size_t i = 0; i < rewrites.size(); ++i) {
    for (const NodeRef& node : rewrites[i]->nodes) {
      const auto [found, is_new] = rewrite_at.emplace(node.id, i);
      if (!is_new) joined.join(found->second, i);
    }
  }
  std::map<std::size_t, report::Fusion> groups;
  std::vector<std::size_t> order;
  model.graph().for_each_node([&](const onnx::Node& node) {
    const NodeRef ref = ref_of(node);
    const auto found = rewrite_at.find(ref.id);
    if (found == rewrite_at.end()) return;
    const std::size_t root = joined.root_of(found->second);
    report::Fusion& group = groups[root];
    if (group.nodes.empty()) order.push_back(root);
    group.nodes.push_back(ref);
  });
  for (std::size_t i = 0; i < rewrites.size(); ++i) {
    const auto group = groups.find(joined.root_of(i));
    if (group == groups.end()) continue;
    group->second.pass = rewrites[i]->pass;
    group->second.replacement = rewrites[i]->replacement;
    group->second.reason = rewrites[i]->reason;
    for (const NodeRef& node : rewrites[i]->nodes) {
      const auto plugin = plugins.find(node.id);
      if (plugin != plugins.end()) group->second.plugin = plugin->second;
    }
  }
  std::vector<report::Fusion> fusions;
  for (const std::size_t root : order) {
    if (groups[root].nodes.size() > 1) fusions.push_back(std::move(groups[root]));
  }
  return fusions;
}

}  // namespace

void infer_and_note_faults(onnx::Model& model, const std::map<std::string, Shape, std::less<>>& input_shapes) {
  const auto note = [&](onnx::Node& node, const Error& error) {
    node.metadata[std::string(onnx::fault_note)] = fmt::format("{}: {}", model.source, error.what());
  };
  infer_around_faults(model, input_shapes, note);
  model.graph().for_each_node([&](onnx::Node& node) {
    try {
      check_operator(node);
    } catch (const Error& error) {
      note(node, error);
    }
  });
}

onnx::Model inferred_copy(const onnx::Model& model) {
  onnx::Model copy = model.clone();
  infer_and_note_faults(copy, {});
  return copy;
}

report::RewriteReport convert_in_memory(const runtime::Engine& engine, onnx::Model& model, const Release& release) {
  passes::ConvertOptions options;
  options.has_multi_head_attention = has_multi_head_attention(release);
  // A node that the release computes wrongly is native, and the report names the guard.
  options.guards = lowerings_for(release);
  options.extra_passes = {rules::library_fusion_pass()};
  options.prove = false;
  if (engine.can_run()) {
    std::as_const(model).graph().for_each_node(
        [&](const onnx::Node& node) { options.prove = options.prove || find_operator_for(node); });
  }
  return convert(engine, model, options);
}

Prospect prospect_of(const runtime::Engine& engine, const onnx::Model& model, const Release& release) {
  onnx::Model converted = model.clone();
  hide_faults(converted);
  Prospect prospect;
  report::RewriteReport report;
  try {
    report = convert_in_memory(engine, converted, release);
  } catch (const Error& error) {
    prospect.warnings.push_back(fmt::format(
        "`graft convert` refuses the model, so this report does not predict what the conversion changes: {}",
        error.what()));
  }
  prospect.nodes = onnx::count_nodes(converted);
  const std::map<std::string, std::string> reasons = plugin_reasons(converted);
  const Copies copies = copies_in(converted);
  // why a plugin computes the first output of a node after the conversion
  std::map<NodeRef, std::string, onnx::ByName> plugins;
  model.graph().for_each_node([&](const onnx::Node& node) {
    const auto reason = node.output() == nullptr ? reasons.end() : reasons.find(node.output()->name);
    if (reason != reasons.end()) plugins.emplace(ref_of(node), reason->second);
  });
  for (const report::Rewrite& rewrite : report.rewrites) {
    std::string what = rewrite.pass == "remove_dead"
                           ? "no output needs it: `graft convert` removes it"
                           : fmt::format("`graft convert` replaces it with {}", rewrite.replacement);
    for (const NodeRef& node : rewrite.nodes) {
      const auto plugin = plugins.find(node);
      if (plugin == plugins.end()) continue;
      what += fmt::format(", as a plugin: {}", plugin->second);
      break;
    }
    const bool is_copied =
        rewrite.nodes.size() > 1 && (rewrite.nodes.front().op == "Loop" || rewrite.nodes.front().op == "Scan");
    for (const NodeRef& node : rewrite.nodes) {
      if (is_copied && &node != &rewrite.nodes.front() && !runs_as_copy(node, copies)) continue;
      prospect.forecast.becomes.emplace(node, what);
    }
  }
  prospect.fusions = fusions_of(model, report, reasons);
  for (const report::Fusion& fusion : prospect.fusions) {
    if (!fusion.plugin.empty()) prospect.fused += fusion.nodes.size();
  }
  prospect.warnings.insert(prospect.warnings.end(), report.warnings.begin(), report.warnings.end());
  prospect.near_misses = std::move(report.near_misses);
  if (!report.rewrites.empty()) prospect.converted = std::make_shared<const onnx::Model>(std::move(converted));
  for (const report::Rewrite& rewrite : report.rejected) {
    prospect.forecast.stays.insert(rewrite.nodes.begin(), rewrite.nodes.end());
  }
  return prospect;
}

}  // namespace graft::inspect

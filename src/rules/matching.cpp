// Matches a rule's selection with the nodes of a network. Conditions are tested in one order, so that the nearest node
// is the one for which the most hold.
#include "rules/matching.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <unordered_set>

#include "core/suggest.hpp"
#include "onnx/operator_node.hpp"
#include "onnx/text.hpp"
#include "rules/captured_values.hpp"

namespace graft::rules {
namespace {

std::string note_of(const onnx::Node& node, std::string_view key) {
  const auto found = node.metadata.find(key);
  return found == node.metadata.end() ? "" : found->second;
}

std::string type_of(const onnx::Node& node) {
  if (const onnx::OperatorMatch match = find_operator_for(node); match && match.drop_in == nullptr) {
    return std::string(match.type->name);
  }
  return node.op_type;
}

std::string full_type_of(const onnx::Node& node) {
  return node.domain.empty() ? node.op_type : node.domain + "::" + type_of(node);
}

/// Returns the name of a node, or of its first output if the node has no name.
std::string name_of(const onnx::Node& node) {
  if (!node.name.empty()) return node.name;
  for (const onnx::Value* output : node.outputs) {
    if (output != nullptr) return output->name;
  }
  return "";
}

/// Returns the name of the layer of an imported network from which a node was created: its name (or that of its first
/// output) up to the first ':', without leading slashes. Importers name nodes `layer:part`.
std::string layer_of(const onnx::Node& node) {
  std::string name = name_of(node);
  name.resize(std::min(name.find(':'), name.size()));
  while (name.starts_with('/')) name.erase(0, 1);
  return name;
}

/// Returns the shortest prefix of a node's layer name, cut at a slash, that the pattern `scope` matches, or nothing if
/// none matches.
std::optional<std::string> scope_of(const onnx::Node& node, const NamePattern& scope) {
  const std::string name = layer_of(node);
  for (std::size_t end = name.find('/');; end = name.find('/', end + 1)) {
    std::string prefix = name.substr(0, end);
    if (scope.matches(prefix)) return prefix;
    if (end == std::string::npos) return std::nullopt;
  }
}

bool same(const RuleValue::Data& a, const RuleValue::Data& b) {
  const auto left = to_numbers(a);
  const auto right = to_numbers(b);
  if (!left || !right) return a == b;
  return std::equal(left->begin(), left->end(), right->begin(), right->end(),
                    [](double x, double y) { return static_cast<float>(x) == static_cast<float>(y); });
}

std::string failure_of(const TensorCondition& condition, const onnx::Value* value, std::size_t index) {
  if (value == nullptr) return fmt::format("input {} is absent, but the rule has a condition on it", index);
  if (condition.dtype && value->type != condition.dtype) {
    return fmt::format("input {} is {}; the rule requires {}", index, type_text(*value), to_string(*condition.dtype));
  }
  const auto rank = value->rank();
  if (condition.rank && (!rank || static_cast<std::size_t>(*rank) != *condition.rank)) {
    return fmt::format("input {} is {}; the rule requires rank {}", index, type_text(*value), *condition.rank);
  }
  if (!condition.shape) return "";
  const auto& wanted = *condition.shape;
  bool fits = value->shape && value->shape->size() == wanted.size();
  for (std::size_t axis = 0; fits && axis < wanted.size(); ++axis) {
    fits = wanted[axis] == "any" || (*value->shape)[axis].to_string() == wanted[axis];
  }
  if (fits) return "";
  return fmt::format("input {} is {}; the rule requires [{}]", index, type_text(*value), fmt::join(wanted, ", "));
}

/// The result of checking the conditions of a selector on one node: how many held before the first that did not, and a
/// description of that condition (empty if all held).
struct Trial {
  std::size_t held = 0;
  std::string failure;
};

Trial try_node(const Selector& selector, const onnx::Node& node) {
  Trial trial;
  const auto wants = [&](const std::optional<NamePattern>& pattern, const char* what,
                         const std::vector<std::string>& names) {
    if (!pattern || !trial.failure.empty()) return;
    if (std::any_of(names.begin(), names.end(), [&](const std::string& name) { return pattern->matches(name); })) {
      ++trial.held;
    } else {
      trial.failure = fmt::format("{} is {}; the rule requires {}", what,
                                  names.empty() || names.front().empty() ? "unknown" : names.front(), pattern->text());
    }
  };
  wants(selector.op, "its operator", {full_type_of(node), type_of(node), node.op_type});
  wants(selector.layer_type, "its layer type", {note_of(node, onnx::layer_type_note)});
  wants(selector.layer, "its layer", {layer_of(node)});
  if (selector.name) {
    std::vector<std::string> names{node.name};
    for (const onnx::Value* output : node.outputs) {
      if (output != nullptr) names.push_back(output->name);
    }
    wants(selector.name, "its name", names);
  }
  for (const auto& [name, wanted] : selector.attributes) {
    if (!trial.failure.empty()) return trial;
    const auto found = attribute_data(node, name);
    if (!found) {
      trial.failure = fmt::format("attribute `{}` is absent; the rule requires {}", name, wanted.to_string());
    } else if (!same(*found, wanted.data)) {
      trial.failure = fmt::format("attribute `{}` is {}; the rule requires {}", name, RuleValue{{}, *found}.to_string(),
                                  wanted.to_string());
    } else {
      ++trial.held;
    }
  }
  for (const auto& [index, condition] : selector.inputs) {
    if (!trial.failure.empty()) return trial;
    trial.failure = failure_of(condition, node.input(index), index);
    trial.held += trial.failure.empty() ? 1 : 0;
  }
  return trial;
}

/// The names of one kind ("layer types", "scopes" ...) that occur in a model, for suggestions in messages.
struct KnownNames {
  const NamePattern* wanted = nullptr;  ///< Null if the selection has no name.
  std::string what;
  std::set<std::string> names;
};

KnownNames known_names(const Selector& selector, const std::vector<onnx::Graph*>& graphs) {
  const auto collect = [&](const std::function<std::string(const onnx::Node&)>& name) {
    std::set<std::string> names;
    for (const onnx::Graph* graph : graphs) {
      for (const onnx::Node* node : graph->nodes()) names.insert(name(*node));
    }
    return names;
  };
  if (selector.scope) {
    std::set<std::string> scopes;
    for (const std::string& name : collect(layer_of)) {
      for (std::size_t end = name.find('/'); end != std::string::npos; end = name.find('/', end + 1)) {
        scopes.insert(name.substr(0, end));
      }
    }
    return {&*selector.scope, "scopes", std::move(scopes)};
  }
  if (selector.op) return {&*selector.op, "operators", collect(full_type_of)};
  if (selector.layer_type) {
    std::set<std::string> types = collect([](const onnx::Node& node) { return note_of(node, onnx::layer_type_note); });
    types.erase("");
    return {&*selector.layer_type, "layer types", std::move(types)};
  }
  if (selector.layer) return {&*selector.layer, "layers", collect(layer_of)};
  if (selector.name) return {&*selector.name, "names", collect(name_of)};
  return {};
}

/// Returns at most one note with the names in the graphs that are most similar to the name in the selector, for a
/// selector that matches no node; empty if there is nothing to suggest.
std::vector<std::string> near_names(const Selector& selector, const std::vector<onnx::Graph*>& graphs) {
  const KnownNames all = known_names(selector, graphs);
  if (all.names.empty() && all.what == "layer types") {
    return {
        "only networks that were read from Caffe or TensorFlow have layer types; select the nodes of this network with "
        "`op` or `name`"};
  }
  if (all.names.empty()) return {};
  const std::vector<std::string> known(all.names.begin(), all.names.end());
  if (const auto meant = nearest(all.wanted->text(), known)) return {fmt::format("nearest: {}", *meant)};
  constexpr std::size_t few = 8;
  const std::size_t listed = std::min(few, known.size());
  return {fmt::format("the model has the {} {}{}", all.what, fmt::join(known.begin(), known.begin() + listed, ", "),
                      known.size() > few ? fmt::format(" and {} more", known.size() - few) : "")};
}

}  // namespace

std::vector<onnx::Value*> find_tensors(const std::vector<onnx::Value*>& among, const NamePattern& name) {
  std::vector<onnx::Value*> result;
  for (onnx::Value* value : among) {
    if (name.matches(value->name)) result.push_back(value);
  }
  return result;
}

std::vector<std::string> names_of(const std::vector<onnx::Value*>& values) {
  std::vector<std::string> names;
  for (const onnx::Value* value : values) names.push_back(value->name);
  return names;
}

Region make_region(std::string name, std::vector<onnx::Node*> nodes) {
  Region region{std::move(name), nodes.front()->graph, std::move(nodes), {}, {}};
  const std::unordered_set<const onnx::Node*> inside(region.nodes.begin(), region.nodes.end());
  std::unordered_set<const onnx::Value*> seen;
  const bool single = region.nodes.size() == 1;
  for (const onnx::Node* node : region.nodes) {
    for (onnx::Value* input : node->inputs) {
      const bool comes_in = input != nullptr && !inside.contains(input->producer) && !input->constant();
      if (single || (comes_in && seen.insert(input).second)) region.inputs.push_back(input);
    }
    for (onnx::Value* output : node->outputs) {
      if (output == nullptr) continue;
      const bool used = std::any_of(output->uses.begin(), output->uses.end(),
                                    [&](const onnx::Use& use) { return !inside.contains(use.node); });
      if (used || output->is_output()) region.outputs.push_back(output);
    }
  }
  return region;
}

Region region_of(const onnx::Match& match, onnx::Graph& graph) {
  Region region;
  region.name = fmt::format("the pattern at {}", onnx::describe(*match.root));
  region.graph = &graph;
  region.nodes = match.nodes;
  region.match = &match;
  for (onnx::Value* output : match.root->outputs) {
    if (output != nullptr && !output->is_unused()) region.outputs.push_back(output);
  }
  return region;
}

Selection select(const Selector& selector, const std::vector<onnx::Graph*>& graphs) {
  Selection selection;
  std::vector<std::pair<std::size_t, std::string>> failures;
  for (const onnx::Graph* graph : graphs) {
    std::map<std::string, std::vector<onnx::Node*>> groups;
    std::vector<std::string> order;
    const auto join = [&](const std::string& group, onnx::Node* node) {
      const auto [found, is_new] = groups.try_emplace(group);
      if (is_new) order.push_back(group);
      found->second.push_back(node);
    };
    for (onnx::Node* node : graph->nodes()) {
      if (selector.scope) {
        if (const auto scope = scope_of(*node, *selector.scope)) join(fmt::format("scope `{}`", *scope), node);
        continue;
      }
      Trial trial = try_node(selector, *node);
      if (!trial.failure.empty()) {
        if (trial.held > 0)
          failures.emplace_back(trial.held, fmt::format("{}: {}", onnx::describe(*node), trial.failure));
      } else if ((selector.layer || selector.layer_type) && !selector.op && !selector.name) {
        join(fmt::format("layer `{}`", layer_of(*node)), node);
      } else {
        selection.regions.push_back(make_region(onnx::describe(*node), {node}));
      }
    }
    for (const std::string& group : order) {
      std::vector<onnx::Node*>& nodes = groups.at(group);
      const std::string name = fmt::format("{}, {} node{}", group, nodes.size(), nodes.size() == 1 ? "" : "s");
      selection.regions.push_back(make_region(name, std::move(nodes)));
      selection.regions.back().is_group = true;
    }
  }
  if (!selection.regions.empty()) return selection;
  std::stable_sort(failures.begin(), failures.end(), [](const auto& a, const auto& b) { return a.first > b.first; });
  constexpr std::size_t most_notes = 3;
  for (std::size_t i = 0; i < std::min(most_notes, failures.size()); ++i) {
    selection.nearest.push_back("nearest: " + failures[i].second);
  }
  if (failures.empty()) selection.nearest = near_names(selector, graphs);
  return selection;
}

}  // namespace graft::rules

// Keeps a part of a network (`cut`): the nodes between the tensors of `from` and those of `to`.
//
//   - cut: {to: [features]}   the model   becomes   the part that 'features' needs
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <string>
#include <unordered_set>
#include <vector>

#include "onnx/extract.hpp"
#include "rules/kinds.hpp"

namespace graft::rules {
namespace {

/// Returns all tensors of the graph that match one of these names. Throws Error for a name that no tensor matches.
std::vector<const onnx::Value*> find_ends(const onnx::Graph& graph, const std::vector<NamePattern>& names) {
  std::vector<const onnx::Value*> result;
  for (const NamePattern& name : names) {
    const std::vector<onnx::Value*> values = find_tensors(graph.values(), name);
    if (values.empty()) {
      fail_at(name.place(), fmt::format("there is no tensor '{}'{}", name.text(),
                                        did_you_mean(name.text(), names_of(graph.values()))));
    }
    result.insert(result.end(), values.begin(), values.end());
  }
  return result;
}

/// Returns the inputs of the sub-network that computes `to`. On each path back from a tensor in `to`, this is the first
/// tensor that is in `from` or is an input of the graph.
std::vector<const onnx::Value*> inputs_reached(const std::vector<const onnx::Value*>& to,
                                               const std::vector<const onnx::Value*>& from) {
  std::vector<const onnx::Value*> result;
  std::unordered_set<const onnx::Value*> seen;
  std::vector<const onnx::Value*> waiting(to.rbegin(), to.rend());
  while (!waiting.empty()) {
    const onnx::Value* value = waiting.back();
    waiting.pop_back();
    if (value == nullptr || !seen.insert(value).second) continue;
    const bool is_border = std::find(from.begin(), from.end(), value) != from.end();
    if (is_border || value->is_input) {
      result.push_back(value);
      continue;
    }
    if (value->producer == nullptr) continue;
    for (const onnx::Value* input : value->producer->inputs) waiting.push_back(input);
    for (const onnx::Graph* inner : value->producer->subgraphs()) {
      inner->for_each_node([&](const onnx::Node& node) {
        for (const onnx::Value* input : node.inputs) {
          if (input != nullptr && input->graph == value->graph) waiting.push_back(input);
        }
      });
    }
  }
  return result;
}

/// Throws Error if `reached`, the inputs of the sub-network that is cut out, contains a tensor that `from` does not
/// list, or lacks one that it lists.
void check_part(const Place& place, const std::vector<const onnx::Value*>& from,
                const std::vector<const onnx::Value*>& reached) {
  const auto contains = [](const std::vector<const onnx::Value*>& values, const onnx::Value* value) {
    return std::find(values.begin(), values.end(), value) != values.end();
  };
  std::vector<std::string> missing;
  for (const onnx::Value* value : reached) {
    if (!contains(from, value)) missing.push_back("'" + value->name + "'");
  }
  if (!missing.empty()) {
    fail_at(place, fmt::format("the part also needs {}, which `from` does not list; add what is missing to `from`",
                               fmt::join(missing, ", ")));
  }
  for (const onnx::Value* value : from) {
    if (!contains(reached, value)) {
      fail_at(place, fmt::format("no node between `from` and `to` reads '{0}'; remove '{0}' from `from`", value->name));
    }
  }
}

}  // namespace

void cut(RuleRun& run) {
  std::vector<const onnx::Value*> from = find_ends(run.graph(), run.rule.from);
  std::vector<const onnx::Value*> to = find_ends(run.graph(), run.rule.to);
  if (to.empty()) to.assign(run.graph().outputs().begin(), run.graph().outputs().end());
  const std::vector<const onnx::Value*> reached = inputs_reached(to, from);
  if (run.rule.from.empty()) {
    from = reached;
  } else {
    check_part(run.rule.place, from, reached);
  }
  for (const onnx::Value* value : from) {
    if (!value->type)
      fail_at(run.rule.place, fmt::format("the element type of '{}' is unknown, so the part cannot begin at this "
                                          "tensor; list another tensor in `from`",
                                          value->name));
  }
  onnx::Model& model = run.rewriter.model();
  const std::size_t before = run.graph().node_count();
  const std::string source = model.source;
  model = extract(model, from, to);
  model.source = source;
  record_change(
      run, {.others = fmt::format("{} nodes", before)},
      fmt::format("the {} nodes from {} to {}", run.graph().node_count(),
                  fmt::join(names_of(run.graph().inputs()), ", "), fmt::join(names_of(run.graph().outputs()), ", ")));
}

}  // namespace graft::rules

// Removes nodes (`remove`): each node that reads the output of the removed nodes reads one of their inputs instead.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <utility>

#include "onnx/node_ref.hpp"
#include "rules/kinds.hpp"
#include "rules/replace/new_node.hpp"

namespace graft::rules {
namespace {

void remove(RuleRun& run, const Region& region) {
  if (region.outputs.empty()) {  // an assertion, for example: it is removed with all other nodes that no output needs
    run.rewriter.record(region.is_group ? Rewriter::Subject{.others = region.name}
                                        : Rewriter::Subject{.nodes = {ref_of(*region.nodes.front())}},
                        "nothing", request_text(run.rule), "by definition: no output of the graph needs it");
    ++run.outcome.applied;
    return;
  }
  if (region.outputs.size() > 1) {
    std::vector<std::string> names;
    for (const onnx::Value* output : region.outputs) names.push_back("'" + output->name + "'");
    fail_at(run.rule.place,
            fmt::format("{}: the outputs {} are all used; a rule `remove` can replace only one output with an input",
                        region.name, fmt::join(names, " and ")));
  }
  if (run.rule.input >= region.inputs.size() || region.inputs[run.rule.input] == nullptr) {
    fail_at(
        run.rule.place,
        fmt::format(
            "{}: input {} does not exist or is absent; `input` is the index of one of its {} inputs, counted from 0",
            region.name, run.rule.input, region.inputs.size()));
  }
  onnx::Value* from = region.inputs[run.rule.input];
  Proposal proposal = propose(run.rule, region, fmt::format("its input '{}'", from->name));
  if (!from->constant()) proposal.inputs.push_back(from);
  proposal.edit = [from = to_input(from), to = region.outputs[0]->name](onnx::Graph& graph) {
    onnx::Value* x = graph.find(from.name);
    if (x == nullptr) x = graph.add_constant(from.name, from.constant.value());
    onnx::Value* y = graph.find(to);
    onnx::Node* copy = graph.add_node("Identity", {x}, {to}, y->producer);
    graph.move_output(*y->producer, y->output_index, *copy, 0);
    graph.topological_sort();
  };
  apply(run, region, proposal);
}

}  // namespace

void remove_nodes(RuleRun& run) {
  for (const Region& region : select_regions(run)) remove(run, region);
}

}  // namespace graft::rules

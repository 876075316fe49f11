// Pass lower_drop_ins: nodes named after plugins of other libraries (LReLU_TRT, l2norm_helper) become Graft's
// operators.
#include <fmt/format.h>

#include "graph/operator_node.hpp"
#include "passes/passes.hpp"
#include "passes/rewriter.hpp"

namespace graft {

void lower_drop_ins(Rewriter& rewriter) {
  for (Graph* graph : rewriter.graphs()) {
    for (Node* node : graph->nodes()) {
      const OperatorMatch found = find_operator_for(*node);
      if (found.drop_in == nullptr || node->output() == nullptr) continue;
      std::shared_ptr<const Operator> op = make_operator(*node);
      Proposal proposal{.nodes = {node},
                        .inputs = {},
                        .outputs = {node->output()},
                        .replacement = to_text(*op),
                        .reason = fmt::format("{} stands in for the plugin {} {}: {}", op->type().name,
                                              found.drop_in->plugin_name, found.drop_in->version, found.drop_in->doc),
                        .by_definition = "by definition: the plugin's fields are the operator's attributes",
                        .edit = {}};
      std::vector<std::string> names;
      for (Value* input : node->inputs) {
        if (input != nullptr) proposal.inputs.push_back(input);
        names.push_back(input == nullptr ? "" : input->name);
      }
      proposal.edit = operator_edit(op, std::move(names), node->output()->name);
      rewriter.apply(proposal);
    }
  }
}

}  // namespace graft

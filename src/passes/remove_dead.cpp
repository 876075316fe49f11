// Pass remove_dead: nodes and constants that no output needs.
#include <fmt/format.h>

#include <algorithm>

#include "graph/functions.hpp"
#include "passes/passes.hpp"
#include "passes/rewriter.hpp"

namespace graft {

void remove_dead(Rewriter& rewriter) {
  std::vector<Graph*> graphs = rewriter.graphs();
  // Those inside first: a dead If takes its branches with it.
  std::reverse(graphs.begin(), graphs.end());
  for (Graph* graph : graphs) {
    std::vector<std::string> before;
    for (const Node* node : graph->nodes()) before.push_back(describe(*node));
    if (graph->remove_dead() == 0) continue;
    for (const Node* node : graph->nodes()) std::erase(before, describe(*node));
    rewriter.record(std::move(before), "nothing", "no output needs them", "by definition: nothing reads their outputs");
  }
  remove_unused_functions(rewriter.model());
}

}  // namespace graft

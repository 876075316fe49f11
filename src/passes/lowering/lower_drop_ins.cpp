// Pass lower_drop_ins: replaces nodes that are named after plugins of other libraries by Graft operators, and nodes of
// any domain that name an operator of a loaded library by that operator.
//
//   LReLU_TRT<negSlope=0.1>(x)   becomes   graft::LeakyReLU<alpha=0.1>(x)
#include <fmt/format.h>

#include "graft/operator/registry.hpp"
#include "onnx/functions.hpp"
#include "onnx/operator_node.hpp"
#include "passes/passes.hpp"
#include "passes/rewriter.hpp"

namespace graft::passes {

void lower_drop_ins(Rewriter& rewriter) {
  onnx::Graph& graph = rewriter.model().graph();
  graph.for_each_node([&](onnx::Node& node) {
    const onnx::OperatorMatch found = find_adopted_operator(node);
    if (!found) return;
    const auto op = make_operator(node);
    if (const OperatorLibrary* library = library_of(*found.type); library != nullptr && found.drop_in == nullptr) {
      rewriter.record({.nodes = {ref_of(node)}}, to_text(*op),
                      fmt::format("{} of domain {} is an operator of {}", op->type().name, node.domain, library->file),
                      "by definition: the node names the operator");
      return;
    }
    rewriter.record({.nodes = {ref_of(node)}}, to_text(*op),
                    fmt::format("{} replaces the plugin {} {}: {}", op->type().name, found.drop_in->plugin_name,
                                found.drop_in->version, found.drop_in->doc),
                    "by definition: the plugin's fields are the operator's attributes, its inputs the operator's");
  });
  adopt_drop_ins(rewriter.model());
}

}  // namespace graft::passes

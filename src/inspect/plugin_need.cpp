// Judges the model with all its functions inlined, as TensorRT's parser reads it where there are no plugins.
#include "inspect/plugin_need.hpp"

#include <cstddef>
#include <utility>
#include <vector>

#include "graft/error.hpp"
#include "inspect/forecast.hpp"
#include "inspect/verdicts.hpp"
#include "onnx/functions.hpp"
#include "onnx/node_ref.hpp"
#include "onnx/operator_node.hpp"

namespace graft::inspect {

std::string find_plugin_need(const onnx::Model& model, const Release& release) {
  onnx::Model inlined = model.clone();
  try {
    onnx::inline_functions(inlined, {.note_calls = true});
  } catch (const Error& error) {  // functions with incompatible opsets cannot be inlined
    return error.what();
  }
  infer_and_note_faults(inlined, {});
  const std::vector<NodeSupport> verdicts = judge_nodes(inlined, {}, release);
  std::string need;
  std::size_t index = 0;
  std::as_const(inlined).graph().for_each_node([&](const onnx::Node& node) {
    const Support support = verdicts.at(index++).support;
    // A node outside of functions that the rules do not know is the same in both builds.
    const bool is_in_function = node.metadata.contains(onnx::call_note);
    const bool runs =
        support == Support::native || (!is_in_function && (support == Support::lowered || support == Support::unknown));
    if (need.empty() && (!runs || find_operator_for(node))) need = onnx::describe(node);
  });
  return need;
}

}  // namespace graft::inspect

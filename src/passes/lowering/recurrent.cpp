// LSTM, GRU and RNN with the batch before time (layout = 1), which TensorRT ignores.
//
//   LSTM<layout=1>(x, w, r)   becomes   Transpose(LSTM<layout=0>(Transpose(x), w, r))
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "onnx/text.hpp"
#include "passes/lowering/lowering.hpp"

namespace graft::passes {
namespace {

/// Returns "<hidden_size=4, ...>" with all attributes but layout, or nothing where the node has no other attribute.
std::string recurrent_text(const onnx::Node& node) {
  std::vector<std::string> texts;
  for (const auto& [name, attribute] : node.attributes) {
    if (name != "layout") texts.push_back(fmt::format("{}={}", name, onnx::to_text(attribute)));
  }
  return texts.empty() ? "" : fmt::format("<{}>", fmt::join(texts, ", "));
}

}  // namespace

std::optional<Replacement> lower_recurrent_layout(Site& site) {
  const onnx::Node& node = site.node();
  Replacement result;
  // X and the initial states have a batch, the seventh input of LSTM among them. Sequence lengths and weights stay as
  // they are.
  std::vector<std::string> inputs;
  for (std::size_t i = 0; i < node.inputs.size(); ++i) {
    const bool has_batch = i == 0 || i == 5 || i == 6;
    if (!site.has_input(i)) {
      inputs.emplace_back("_");
    } else if (has_batch) {
      inputs.push_back(fmt::format("time_first{}", i));
      result.line(fmt::format("time_first{0} = Transpose<perm=[1, 0, 2]>(x{0})", i));
    } else {
      inputs.push_back(fmt::format("x{}", i));
    }
  }
  std::vector<std::string> outputs;
  std::string after;
  for (std::size_t i = 0; i < node.outputs.size(); ++i) {
    if (!site.is_used(i)) {
      outputs.emplace_back("_");
      continue;
    }
    outputs.push_back(fmt::format("given{}", i));
    after += fmt::format("y{0} = Transpose<perm={1}>(given{0})\n", i, i == 0 ? "[2, 0, 1, 3]" : "[1, 0, 2]");
  }
  result.line(fmt::format("{} = {}{}({})", fmt::join(outputs, ", "), node.op_type, recurrent_text(node),
                          fmt::join(inputs, ", ")));
  result.nodes += after;
  result.by_definition =
      "by definition: layout = 1 is layout = 0 with the first two axes of its tensors exchanged; OpenVINO does not "
      "support it, and the lowering is tested with results of ONNX's own tests";
  result.summary = fmt::format("{} with layout = 0, between Transpose nodes", node.op_type);
  return result;
}

}  // namespace graft::passes

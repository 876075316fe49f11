// LSTM, GRU and RNN with the batch before time (layout = 1), which TensorRT ignores, and LSTM with input_forget, which
// TensorRT refuses.
//
//   LSTM<layout=1>(x, w, r)         becomes   Transpose(LSTM<layout=0>(Transpose(x), w, r))
//   LSTM<input_forget=1>(x, w, r)   becomes   LSTM(x, w', r'), where the forget gate has the negated weights of the
//                                             input gate: 1 - sigmoid(z) = sigmoid(-z)
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cctype>
#include <utility>

#include "onnx/text.hpp"
#include "passes/lowering/lowering.hpp"

namespace graft::passes {
namespace {

/// Returns all attributes of a recurrent node except `without` as text, "<hidden_size=4, ...>", or an empty string if
/// no other attribute exists.
std::string recurrent_text(const onnx::Node& node, std::string_view without) {
  std::vector<std::string> texts;
  for (const auto& [name, attribute] : node.attributes) {
    if (name != without) texts.push_back(fmt::format("{}={}", name, onnx::to_text(attribute)));
  }
  return texts.empty() ? "" : fmt::format("<{}>", fmt::join(texts, ", "));
}

/// Returns an empty string if the gate activation f of an LSTM satisfies 1 - f(x) = f(-x), which the lowering of
/// input_forget needs; otherwise why it does not.
std::string gates_obstacle(const onnx::Node& lstm) {
  const onnx::NodeAttribute* given = lstm.attribute("activations");
  const auto* activations = given == nullptr ? nullptr : given->get<std::vector<std::string>>();
  constexpr std::size_t of_one_direction = 3;
  for (std::size_t i = 0; activations != nullptr && i < activations->size(); i += of_one_direction) {
    std::string name = (*activations)[i];
    std::transform(name.begin(), name.end(), name.begin(), [](unsigned char c) { return std::tolower(c); });
    if (name == "hardsigmoid") {
      const auto betas = lstm.floats("activation_beta");
      if (betas && std::any_of(betas->begin(), betas->end(), [](float beta) { return beta != 0.5F; }))
        return "the beta of its HardSigmoid is not 0.5";
    } else if (name != "sigmoid") {
      return fmt::format("the activation of its gates is {}", (*activations)[i]);
    }
  }
  return "";
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
  result.line(fmt::format("{} = {}{}({})", fmt::join(outputs, ", "), node.op_type, recurrent_text(node, "layout"),
                          fmt::join(inputs, ", ")));
  result.nodes += after;
  result.by_definition =
      "by definition: layout = 1 is layout = 0 with the first two axes of its tensors exchanged; OpenVINO does not "
      "support it, and the lowering is tested with results of ONNX's own tests";
  result.summary = fmt::format("{} with layout = 0, between Transpose nodes", node.op_type);
  return result;
}

std::optional<Replacement> lower_coupled_gates(Site& site) {
  const onnx::Node& node = site.node();
  if (const std::string why = gates_obstacle(node); !why.empty()) return site.no(why);
  const auto hidden =
      node.int_or("hidden_size", 0) > 0 ? std::optional(node.int_or("hidden_size", 0)) : site.size(2, -1);
  if (!hidden) return site.no_size("the size of its states is dynamic");
  Replacement result;
  std::vector<std::string> inputs;
  for (std::size_t i = 0; i < node.inputs.size(); ++i) {
    inputs.push_back(site.has_input(i) ? fmt::format("x{}", i) : "_");
  }
  // The gates of W and R are input, output, forget, cell; B has those of W and then those of R; P has no cell.
  for (const auto& [index, gates] : std::initializer_list<std::pair<std::size_t, std::string_view>>{
           {1, "iofc"}, {2, "iofc"}, {3, "iofciofc"}, {7, "iof"}}) {
    if (!site.has_input(index)) continue;
    std::vector<std::string> parts;
    std::vector<std::string> kept;
    for (std::size_t k = 0; k < gates.size(); ++k) parts.push_back(fmt::format("gate{}_{}", index, k));
    kept = parts;
    std::string lines;
    for (std::size_t k = 0; k < gates.size(); ++k) {
      if (gates[k] != 'f') continue;
      kept[k] = fmt::format("coupled{}_{}", index, k);
      lines += fmt::format("{} = Neg({})\n", kept[k], parts[k - 2]);
    }
    const std::string sizes =
        result.ints(fmt::format("sizes{}", index), std::vector<std::int64_t>(gates.size(), *hidden));
    result.line(fmt::format("{} = Split<axis=1>(x{}, {})", fmt::join(parts, ", "), index, sizes));
    result.nodes += lines;
    inputs[index] = fmt::format("all{}", index);
    result.line(fmt::format("{} = Concat<axis=1>({})", inputs[index], fmt::join(kept, ", ")));
  }
  std::vector<std::string> outputs;
  for (std::size_t i = 0; i < node.outputs.size(); ++i)
    outputs.push_back(site.is_used(i) ? fmt::format("y{}", i) : "_");
  result.line(fmt::format("{} = LSTM{}({})", fmt::join(outputs, ", "), recurrent_text(node, "input_forget"),
                          fmt::join(inputs, ", ")));
  result.by_definition =
      "by definition: 1 - sigmoid(z) is sigmoid(-z); OpenVINO ignores input_forget, and the lowering is tested with "
      "results of ONNX Runtime";
  result.summary = "LSTM with the negated weights of the input gate in the forget gate";
  return result;
}

}  // namespace graft::passes

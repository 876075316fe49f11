// Compares nodes with the counts of inputs and outputs, and with the attributes, in the schemas of ONNX.
#include "onnx/schema_ports.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <limits>
#include <map>
#include <utility>

#include "core/suggest.hpp"
#include "graft/error.hpp"
#include "onnx/operator_node.hpp"
#include "onnx/schema.hpp"

namespace graft::onnx {
namespace {

// The rows are sorted by name, then by opset.
constexpr SchemaPorts ports_of_operators[] = {
#include "onnx/schema_ports.inc"
};

constexpr std::size_t unlimited = std::numeric_limits<std::size_t>::max();

std::size_t most_of(std::string_view letters) { return letters.ends_with('v') ? unlimited : letters.size(); }

char letter_of(std::string_view letters, std::size_t index) {
  return index < letters.size() ? letters[index] : letters.back();
}

/// Returns a phrase such as "2 inputs", "1 to 3 inputs" or "1 or more inputs"; `unit` is the word in the singular.
std::string count_text(std::size_t fewest, std::size_t most, std::string_view unit) {
  if (most == unlimited) return fmt::format("{} or more {}s", fewest, unit);
  if (most != fewest) return fmt::format("{} to {} {}s", fewest, most, unit);
  return fmt::format("{} {}{}", most, unit, most == 1 ? "" : "s");
}

std::vector<std::string> words_of(std::string_view text) {
  std::vector<std::string> words;
  while (!text.empty()) {
    const std::size_t end = text.find(' ');
    words.emplace_back(text.substr(0, end));
    text = end == std::string_view::npos ? "" : text.substr(end + 1);
  }
  return words;
}

/// Returns whether ONNX's schemas define the attributes of a node. A plugin that overrides an operator has its own
/// attributes.
bool has_attributes_of_onnx(const Node& node) {
  return node.domain.empty() && !find_operator_for(node) && node.attribute("plugin_version") == nullptr &&
         node.attribute("plugin_namespace") == nullptr;
}

}  // namespace

std::size_t SchemaPorts::most_inputs() const { return most_of(inputs); }
std::size_t SchemaPorts::most_outputs() const { return most_of(outputs); }

const SchemaPorts* find_schema_ports(std::string_view op_type, std::int64_t opset) {
  if (find_schema(op_type, opset) == nullptr) return nullptr;
  const auto* next = std::upper_bound(std::begin(ports_of_operators), std::end(ports_of_operators), op_type,
                                      [](std::string_view name, const SchemaPorts& row) { return name < row.name; });
  while (next != std::begin(ports_of_operators)) {
    --next;
    if (next->name != op_type) break;
    if (next->since <= opset) return next;
  }
  return nullptr;
}

std::optional<std::string> port_fault(const Node& node, std::int64_t opset) {
  const SchemaPorts* ports = find_schema_ports(node.op_type, opset);
  if (ports == nullptr) return std::nullopt;
  const std::size_t inputs = node.inputs.size();
  if (inputs < ports->fewest_inputs || inputs > ports->most_inputs()) {
    return fmt::format("{} takes {}, but the node has {}", node.op_type,
                       count_text(ports->fewest_inputs, ports->most_inputs(), "input"), inputs);
  }
  // ONNX's own checker does not check the inputs of a variadic operator, and ONNX Runtime 1.31.1 crashes at Max(x, "").
  for (std::size_t i = 0; i < inputs; ++i) {
    if (node.inputs[i] != nullptr || letter_of(ports->inputs, i) == 'o') continue;
    return fmt::format("input {} of {} cannot be left out", i, node.op_type);
  }
  const std::size_t outputs = node.outputs.size();
  if (outputs < ports->fewest_outputs || outputs > ports->most_outputs()) {
    return fmt::format("{} has {}, but the node has {}", node.op_type,
                       count_text(ports->fewest_outputs, ports->most_outputs(), "output"), outputs);
  }
  for (std::size_t i = 0; i < outputs; ++i) {
    if (node.outputs[i] != nullptr || letter_of(ports->outputs, i) != 's') continue;
    return fmt::format("output {} of {} cannot be left out", i, node.op_type);
  }
  return std::nullopt;
}

void check_ports(const Model& model) {
  const auto check = [&](const Graph& graph, const std::string& where) {
    const std::int64_t opset = graph.opset();
    graph.for_each_node([&](const Node& node) {
      if (!node.domain.empty() || model.functions.contains({node.domain, node.op_type, node.overload})) return;
      const auto fault = port_fault(node, opset);
      if (fault) {
        throw Error(fmt::format("{}: {}{}: {} (operator set {})", model.source, where, describe(node), *fault, opset));
      }
    });
  };
  check(model.graph(), "");
  for (const auto& [key, function] : model.functions) {
    check(*function.body, fmt::format("function {}::{}: ", key.domain, key.name));
  }
}

std::vector<std::string> unknown_attribute_warnings(const Model& model) {
  struct Found {
    std::string warning;
    std::size_t nodes = 0;
  };
  std::map<std::pair<std::string, std::string>, Found> found;  // The warnings by operator and attribute.
  const auto look = [&](const Graph& graph, const std::string& where) {
    const std::int64_t opset = graph.opset();
    graph.for_each_node([&](const Node& node) {
      if (!has_attributes_of_onnx(node)) return;
      if (model.functions.contains({node.domain, node.op_type, node.overload})) return;
      const SchemaPorts* ports = find_schema_ports(node.op_type, opset);
      if (ports == nullptr) return;
      const std::vector<std::string> known = words_of(ports->attributes);
      for (const auto& [name, value] : node.attributes) {
        if (std::find(known.begin(), known.end(), name) != known.end()) continue;
        Found& each = found[{node.op_type, name}];
        if (++each.nodes > 1) continue;
        const auto meant = graft::nearest(name, known);
        each.warning =
            fmt::format("{}: {}{}: operator set {} has no attribute `{}` for {}{}", model.source, where, describe(node),
                        opset, name, node.op_type, meant ? fmt::format(" (did you mean `{}`?)", *meant) : "");
      }
    });
  };
  look(model.graph(), "");
  for (const auto& [key, function] : model.functions) {
    look(*function.body, fmt::format("function {}::{}: ", key.domain, key.name));
  }
  std::vector<std::string> warnings;
  for (const auto& [place, each] : found) {
    warnings.push_back(fmt::format("{}{}; TensorRT may ignore it, and ONNX Runtime refuses the model", each.warning,
                                   each.nodes == 1 ? "" : fmt::format(", which {} nodes have", each.nodes)));
  }
  return warnings;
}

}  // namespace graft::onnx

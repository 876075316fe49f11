// Extracts a region of a graph as a model that runs on its own.
#include "onnx/extract.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <unordered_map>
#include <unordered_set>

#include "onnx/copy.hpp"
#include "onnx/functions.hpp"

namespace graft::onnx {
namespace {

/// Copies the requested outputs and the nodes that they need. The time depends only on the number of these nodes.
class Extractor {
 public:
  Extractor(const Model& model, Model& part) : model_(model), part_(part) {}

  void add_input(const Value& input) {
    if (copies_.contains(&input)) return;
    if (!input.type) {
      throw Error(fmt::format("{}: the element type of '{}' is unknown, so the nodes that read it cannot run alone",
                              model_.source, input.name));
    }
    Value* copy = copy_value(input, part_.graph());
    copy->initializer.reset();
    part_.graph().set_is_input(*copy, true);
    copies_.emplace(&input, copy);
  }

  void add_output(const Value& output) {
    std::vector<const Value*> waiting{&output};
    while (!waiting.empty()) {
      const Value* value = waiting.back();
      if (copies_.contains(value)) {
        waiting.pop_back();
        continue;
      }
      check(*value);
      if (value->producer == nullptr) {
        copies_.emplace(value, copy_value(*value, part_.graph()));
        continue;
      }
      // A node is visited twice: before its inputs are added, and afterwards, when the node itself is added.
      const bool is_second_time = !entered_.insert(value->producer).second;
      if (!is_second_time) {
        const std::vector<const Value*> needed = values_read_by(*value->producer);
        waiting.insert(waiting.end(), needed.rbegin(), needed.rend());
        continue;
      }
      add_node(*value->producer);
    }
    part_.graph().add_output(*copies_.at(&output));
  }

 private:
  void check(const Value& value) const {
    const bool is_constant = value.initializer && !value.is_input;
    if (value.producer == nullptr && !is_constant) {
      throw Error(Error::Kind::internal,
                  fmt::format("{}: the region depends on '{}', which is neither among its inputs nor constant",
                              model_.source, value.name));
    }
    if (value.graph != &model_.graph()) {
      throw Error(Error::Kind::internal, fmt::format("{}: '{}' lies inside a sub-graph", model_.source, value.name));
    }
  }

  void add_node(const Node& node) {
    std::unordered_set<const Value*> cut;  // Outputs of the node that are inputs of the region.
    for (const Value* output : node.outputs) {
      if (output == nullptr) continue;
      if (copies_.contains(output)) {
        cut.insert(output);
      } else {
        copies_.emplace(output, copy_value(*output, part_.graph()));
      }
    }
    copy_node(node, part_.graph(), [&](Value* value) { return cut.contains(value) ? nullptr : copies_.at(value); });
  }

  const Model& model_;
  Model& part_;
  std::unordered_map<const Value*, Value*> copies_;
  std::unordered_set<const Node*> entered_;
};

}  // namespace

std::vector<const Value*> values_read_by(const Node& node) {
  std::vector<const Value*> result;
  const auto add = [&](const Value* value) {
    if (value != nullptr && value->graph == node.graph) result.push_back(value);
  };
  for (const Value* input : node.inputs) add(input);
  for (const Graph* inner : node.subgraphs()) {
    inner->for_each_node([&](const Node& reader) {
      for (const Value* input : reader.inputs) add(input);
      for (const Graph* innermost : reader.subgraphs()) {
        for (const Value* output : innermost->outputs()) add(output);
      }
    });
    for (const Value* output : inner->outputs()) add(output);
  }
  return result;
}

GraphRegion region_before(const std::vector<const Value*>& outputs, const std::function<bool(const Value&)>& ends_at) {
  GraphRegion region;
  std::unordered_set<const Value*> seen;
  std::unordered_set<const Node*> entered;
  std::vector<const Value*> waiting(outputs.rbegin(), outputs.rend());
  const std::unordered_set<const Value*> wanted(outputs.begin(), outputs.end());
  while (!waiting.empty()) {
    const Value* value = waiting.back();
    waiting.pop_back();
    if (!seen.insert(value).second || value->constant()) continue;
    if (value->producer == nullptr || (!wanted.contains(value) && ends_at(*value))) {
      if (value->producer != nullptr || value->is_input) region.inputs.push_back(value);
      continue;
    }
    if (!entered.insert(value->producer).second) continue;
    region.nodes.push_back(value->producer);
    const std::vector<const Value*> needed = values_read_by(*value->producer);
    waiting.insert(waiting.end(), needed.rbegin(), needed.rend());
  }
  std::reverse(region.nodes.begin(), region.nodes.end());
  return region;
}

Model extract(const Model& model, const std::vector<const Value*>& inputs, const std::vector<const Value*>& outputs) {
  Model part = clone_without_nodes(model);
  Extractor extractor(model, part);
  for (const Value* input : inputs) extractor.add_input(*input);
  for (const Value* output : outputs) extractor.add_output(*output);
  remove_unused_functions(part);
  part.source = fmt::format("a part of {}", model.source);
  return part;
}

Model extract_nodes(const Model& model, const std::vector<const Node*>& nodes) {
  const std::unordered_set<const Node*> chosen(nodes.begin(), nodes.end());
  std::unordered_map<const Value*, std::size_t> reads;
  std::vector<const Value*> inputs;
  for (const Node* node : nodes) {
    for (const Value* value : values_read_by(*node)) {
      const Node* producer = value->producer;
      const bool is_made = producer != nullptr && (chosen.contains(producer) || producer->is("Constant"));
      const bool is_constant = producer == nullptr && value->initializer && !value->is_input;
      if (reads[value]++ == 0 && !is_made && !is_constant) inputs.push_back(value);
    }
  }
  std::vector<const Value*> outputs;
  for (const Node* node : nodes) {
    const Value* unread = nullptr;
    bool is_read = false;
    for (const Value* value : node->outputs) {
      if (value == nullptr) continue;
      if (value->is_unused()) {
        unread = unread == nullptr ? value : unread;
        continue;
      }
      is_read = true;
      if (value->uses.size() + value->output_count > reads[value]) outputs.push_back(value);
    }
    if (!is_read && unread != nullptr) outputs.push_back(unread);
  }
  return extract(model, inputs, outputs);
}

}  // namespace graft::onnx

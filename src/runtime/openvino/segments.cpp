// Finds cuts along the order of the operations. A cut is possible if exactly one tensor that is computed before it is
// read after it.
#include "runtime/openvino/segments.hpp"

#include <algorithm>
#include <openvino/op/constant.hpp>
#include <openvino/op/minimum.hpp>
#include <openvino/op/parameter.hpp>
#include <openvino/op/relu.hpp>
#include <openvino/op/result.hpp>
#include <openvino/op/sigmoid.hpp>
#include <openvino/op/tanh.hpp>
#include <unordered_map>
#include <unordered_set>

namespace graft::runtime {
namespace {

constexpr std::size_t longest_uncut = 2000;
constexpr std::size_t shortest_segment = 400;

/// Returns whether a node is assigned to one segment. Constants and parameters may be read on both sides of a cut, and
/// a result belongs to the segment of its input.
bool is_operation(const ov::Node& node) {
  return !ov::is_type<ov::op::v0::Constant>(&node) && !ov::is_type<ov::op::v0::Parameter>(&node) &&
         !ov::is_type<ov::op::v0::Result>(&node);
}

std::vector<std::shared_ptr<ov::Node>> operations_of(const ov::Model& model) {
  std::vector<std::shared_ptr<ov::Node>> operations = model.get_ordered_ops();
  std::erase_if(operations, [](const std::shared_ptr<ov::Node>& node) { return !is_operation(*node); });
  return operations;
}

/// Returns whether the model may be cut after this node. Relu followed by Minimum is excluded, because it is part of
/// the pattern of a hard sigmoid.
bool may_be_cut_after(const ov::Node& node) {
  if (!ov::is_type<ov::op::v0::Relu>(&node) && !ov::is_type<ov::op::v0::Sigmoid>(&node) &&
      !ov::is_type<ov::op::v0::Tanh>(&node)) {
    return false;
  }
  const auto readers = node.output(0).get_target_inputs();
  return node.get_output_element_type(0) == ov::element::f32 &&
         std::none_of(readers.begin(), readers.end(), [](const ov::Input<ov::Node>& reader) {
           return ov::is_type<ov::op::v1::Minimum>(reader.get_node());
         });
}

/// Returns the indices of the operations after which the model is cut.
std::vector<std::size_t> find_cuts(const std::vector<std::shared_ptr<ov::Node>>& operations) {
  std::unordered_map<const ov::Node*, std::size_t> last_use;
  for (std::size_t place = 0; place < operations.size(); ++place) {
    for (const auto& input : operations[place]->input_values()) last_use[input.get_node()] = place;
  }
  std::vector<std::size_t> cuts;
  std::vector<std::size_t> ending(operations.size(), 0);  // the number of operations whose last reader is at this index
  std::size_t waiting = 0;                                // the number of operations with later readers
  std::size_t begin = 0;
  for (std::size_t place = 0; place < operations.size(); ++place) {
    waiting -= ending[place];
    const auto used = last_use.find(operations[place].get());
    if (used != last_use.end()) {
      ++waiting;
      ++ending[used->second];
    }
    const bool is_long = place + 1 - begin >= shortest_segment && operations.size() - place > shortest_segment;
    if (!is_long || waiting != 1 || used == last_use.end() || !may_be_cut_after(*operations[place])) continue;
    cuts.push_back(place);
    begin = place + 1;
  }
  return cuts;
}

/// Returns all nodes that the results depend on.
std::unordered_set<const ov::Node*> nodes_before(const ov::ResultVector& results) {
  std::unordered_set<const ov::Node*> seen;
  std::vector<const ov::Node*> open;
  for (const auto& result : results) open.push_back(result.get());
  while (!open.empty()) {
    const ov::Node* node = open.back();
    open.pop_back();
    if (!seen.insert(node).second) continue;
    for (const auto& input : node->input_values()) open.push_back(input.get_node());
  }
  return seen;
}

Segment whole(const std::shared_ptr<ov::Model>& model) {
  Segment segment{.model = model, .inputs = {}, .outputs = {}};
  for (std::size_t i = 0; i < model->get_parameters().size(); ++i) segment.inputs.emplace_back(i);
  for (std::size_t i = 0; i < model->get_results().size(); ++i) segment.outputs.push_back(i);
  return segment;
}

}  // namespace

std::vector<Segment> cut_into_segments(const std::shared_ptr<ov::Model>& model) {
  if (!model->get_sinks().empty() || !model->get_variables().empty()) return {whole(model)};
  const std::vector<std::shared_ptr<ov::Node>> operations = operations_of(*model);
  if (operations.size() <= longest_uncut) return {whole(model)};
  const std::vector<std::size_t> cuts = find_cuts(operations);
  if (cuts.empty()) return {whole(model)};

  std::unordered_map<const ov::Node*, std::size_t> segment_of;
  for (std::size_t place = 0; place < operations.size(); ++place) {
    const auto cut = std::lower_bound(cuts.begin(), cuts.end(), place);
    segment_of.emplace(operations[place].get(), static_cast<std::size_t>(cut - cuts.begin()));
  }
  std::vector<Segment> segments(cuts.size() + 1);
  std::vector<ov::ResultVector> results(segments.size());
  for (std::size_t i = 0; i < model->get_results().size(); ++i) {
    const std::shared_ptr<ov::op::v0::Result>& result = model->get_results()[i];
    const auto maker = segment_of.find(result->get_input_node_ptr(0));
    const std::size_t place = maker == segment_of.end() ? 0 : maker->second;
    results[place].push_back(result);
    segments[place].outputs.push_back(i);
  }
  std::vector<std::shared_ptr<ov::op::v0::Parameter>> entries(segments.size());
  for (std::size_t i = 0; i < cuts.size(); ++i) {
    const ov::Output<ov::Node> tensor = operations[cuts[i]]->output(0);
    entries[i + 1] = std::make_shared<ov::op::v0::Parameter>(tensor.get_element_type(), tensor.get_partial_shape());
    for (ov::Input<ov::Node> reader : tensor.get_target_inputs()) {
      if (is_operation(*reader.get_node()) && segment_of.at(reader.get_node()) > i) {
        reader.replace_source_output(entries[i + 1]->output(0));
      }
    }
    results[i].push_back(std::make_shared<ov::op::v0::Result>(tensor));
  }
  for (std::size_t i = 0; i < segments.size(); ++i) {
    ov::ParameterVector parameters;
    if (entries[i] != nullptr) {
      parameters.push_back(entries[i]);
      segments[i].inputs.emplace_back(std::nullopt);
    }
    const auto before = nodes_before(results[i]);
    for (std::size_t k = 0; k < model->get_parameters().size(); ++k) {
      const std::shared_ptr<ov::op::v0::Parameter>& parameter = model->get_parameters()[k];
      if (!before.contains(parameter.get())) continue;
      parameters.push_back(parameter);
      segments[i].inputs.emplace_back(k);
    }
    segments[i].model = std::make_shared<ov::Model>(results[i], parameters);
  }
  return segments;
}

}  // namespace graft::runtime

#include "quant/search/measure_tensors.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <numeric>
#include <string_view>

#include "onnx/schema.hpp"

namespace graft::quant {
namespace {

/// Maps the name of a tensor that add_sum() added to the node whose internal sum it is.
using SummingNodes = std::map<std::string, const onnx::Node*, std::less<>>;

/// Adds nodes that compute the sum inside a node, for example the sum of squares of a normalization, and returns their
/// result. Returns null if the operator has no such sum or returns it as output.
onnx::Value* add_sum(onnx::Graph& graph, onnx::Node& node) {
  onnx::Value* x = node.input(0);
  if (!is_f32(x) || !x->shape) return nullptr;
  const auto reduce = [&](onnx::Value* of, onnx::Value* axes) {
    onnx::Node* sum = graph.add_node("ReduceSum", {of, axes}, {node.output()->name + "/sum"});
    sum->attributes.emplace("keepdims", onnx::NodeAttribute(onnx::AttributeData(std::int64_t{1})));
    return sum->output();
  };
  const auto sizes = [&] { return graph.add_node("Abs", {x}, {x->name + "/sizes"})->output(); };
  const auto squares = [&] { return graph.add_node("Mul", {x, x}, {x->name + "/squares"})->output(); };
  const auto constant = [&](const std::vector<std::int64_t>& ints) {
    return graph.add_constant(node.output()->name + "/axes", onnx::TensorData::from_ints(ints));
  };
  if (is_any_of(node, {"ReduceMean", "ReduceSum", "ReduceL1", "ReduceL2", "ReduceLogSum"})) {
    onnx::Value* axes = node.input(1);
    if (const auto given = node.ints("axes")) axes = constant(*given);
    if (axes == nullptr) {
      if (node.int_or("noop_with_empty_axes", 0) != 0) return nullptr;
      // All axes are listed, because OpenVINO does not accept a ReduceSum without axes.
      std::vector<std::int64_t> all(x->shape->size());
      std::iota(all.begin(), all.end(), 0);
      axes = constant(all);
    }
    return reduce(node.is("ReduceL2") ? squares() : sizes(), axes);
  }
  if (node.is("GlobalAveragePool")) {
    std::vector<std::int64_t> axes;
    for (std::size_t axis = 2; axis < x->shape->size(); ++axis) axes.push_back(static_cast<std::int64_t>(axis));
    return axes.empty() ? nullptr : reduce(sizes(), constant(axes));
  }
  if (node.is("LpNormalization")) {
    return reduce(node.int_or("p", 2) == 1 ? sizes() : squares(), constant({node.int_or("axis", -1)}));
  }
  if (node.is("AveragePool")) {
    onnx::Node* mean = graph.add_node("AveragePool", {sizes()}, {node.output()->name + "/mean"});
    double elements = 1;
    for (const std::int64_t size : node.ints("kernel_shape").value_or(std::vector<std::int64_t>{})) {
      elements *= static_cast<double>(size);
    }
    for (const auto& [name, attribute] : node.attributes) mean->attributes.emplace(name, copy_attribute(attribute));
    onnx::Value* count = graph.add_constant(node.output()->name + "/count",
                                            onnx::TensorData::scalar_of(onnx::ElementType::f32, elements));
    return graph.add_node("Mul", {mean->output(), count}, {node.output()->name + "/sum"})->output();
  }
  return nullptr;
}

/// Adds the internal sums of all nodes of `copy`, a copy of `network`, except of nodes in `kept`. Returns the added
/// tensors with the nodes of `network`.
SummingNodes add_sums(onnx::Graph& copy, const onnx::Graph& network, const KeptNodes& kept) {
  std::map<std::string, const onnx::Node*, std::less<>> by_key;
  for (const onnx::Node* node : network.nodes()) by_key.emplace(key_of(*node), node);
  SummingNodes summing;
  for (onnx::Node* node : copy.nodes()) {
    const std::string key = key_of(*node);
    if (kept.contains(key)) continue;
    if (const onnx::Value* sum = add_sum(copy, *node)) summing.emplace(sum->name, by_key.at(key));
  }
  return summing;
}

void keep(KeptNodes& kept, const onnx::Node& node, WhyKept why, const std::string& reason) {
  kept.try_emplace(key_of(node), KeptNode{why, reason});
}

/// Returns whether all readers of a tensor compute the same result if its large negative numbers become minus infinity,
/// as a Softmax does. `largest` is the largest number of the type; no positive value of the tensor may exceed it.
bool may_be_minus_infinity(const MeasuredTensors& measured, const onnx::Value& value, double largest) {
  const verify::TypeEffect* found = measured.effect(value.name);
  if (found == nullptr || found->range.highest.value_or(0) > largest || value.output_count != 0) return false;
  return std::all_of(value.uses.begin(), value.uses.end(), [&](const onnx::Use& use) {
    if (use.node->graph != value.graph) return false;
    if (is_any_of(*use.node, {"Exp", "LogSoftmax", "Relu", "Sigmoid", "Softmax", "Tanh"})) return true;
    const bool gives_on = use.node->is("Add") || use.node->is("Where") || use.node->is("Max") ||
                          (works_in_any_type(*use.node) && has_f32_output(*use.node));
    return gives_on && may_be_minus_infinity(measured, *use.node->output(), largest);
  });
}

/// Returns whether a tensor contains integers in f32, such as indices: the node that computes it rounds or counts, or a
/// reader casts it to integers. No trait of the schemas marks these operators.
bool is_counted(const onnx::Value& value) {
  const onnx::Node* maker = value.producer;
  const bool made = maker != nullptr && (is_any_of(*maker, {"Cast", "Ceil", "Floor", "Range", "Round"}));
  return made || std::any_of(value.uses.begin(), value.uses.end(), [](const onnx::Use& use) {
           return use.node->is("Cast") && use.node->output()->type && is_integer(*use.node->output()->type);
         });
}

}  // namespace

bool has_f32_output(const onnx::Node& node) { return std::any_of(node.outputs.begin(), node.outputs.end(), is_f32); }

MeasuredTensors measure_tensors(TypeTrials& trials, const KeptNodes& kept) {
  const ChooseOptions& options = trials.options();
  MeasuredTensors measured;
  const auto add = [&](const std::string& name, const onnx::TensorData& tensor) {
    const verify::TypeEffect effect = verify::type_effect(tensor, options.precision);
    const auto [place, is_new] = measured.effects.try_emplace(name, effect);
    if (!is_new) place->second.add(effect);
  };
  for (const runtime::TensorMap& inputs : trials.inputs()) {
    for (const auto& [name, tensor] : inputs) {
      if (tensor.type == onnx::ElementType::f32) add(name, tensor);
    }
  }
  // The sums inside nodes are measured in the same runs.
  onnx::Model with_sums = trials.prepared().clone();
  const SummingNodes summing =
      options.precision == report::Precision::f16 ? add_sums(with_sums.graph(), trials.graph(), kept) : SummingNodes{};
  std::map<std::string, verify::TensorRange, std::less<>> sums;
  verify::PartialRuns runs(trials.engine(), with_sums, runtime::OperatorKernels::functions, options.threads);
  runs.infer(trials.inputs());
  std::vector<const onnx::Value*> values;
  for (const onnx::Value* value : trials.real_tensors()) values.push_back(runs.model().graph().find_local(value->name));
  for (const auto& [name, node] : summing) values.push_back(runs.model().graph().find_local(name));
  runs.visit(
      values, trials.inputs(), options.memory,
      [&](const onnx::Value& value, const onnx::TensorData& tensor) {
        if (summing.contains(value.name)) {
          sums[value.name].add(verify::range_of(tensor));
        } else {
          add(value.name, tensor);
        }
      },
      [&](std::size_t done, std::size_t total) { trials.report_progress("measuring the tensors", done, total); });
  for (const auto& [name, range] : sums) measured.sums.emplace_back(summing.at(name), range);
  return measured;
}

void keep_makers_and_readers(KeptNodes& kept, const onnx::Value& value, WhyKept why, const std::string& what) {
  if (value.producer != nullptr && !value.producer->is("Constant")) {
    keep(kept, *value.producer, why, fmt::format("its output '{}' {}", value.name, what));
  }
  for (const onnx::Use& use : value.uses) {
    if (use.node->graph != value.graph || !has_f32_output(*use.node) || use.node->is("Cast")) continue;
    keep(kept, *use.node, why, fmt::format("it reads '{}', which {}", value.name, what));
  }
}

std::vector<MaskTensor> keep_overflowing(KeptNodes& kept, const MeasuredTensors& measured, const onnx::Graph& graph,
                                         report::Precision precision) {
  std::vector<MaskTensor> masks;
  const double largest = verify::largest_of(precision);
  const std::string_view name = to_string(precision);
  for (const onnx::Value* value : graph.values()) {
    if (!is_f32(value) || value->constant()) continue;
    const verify::TypeEffect* found = measured.effect(value->name);
    if (found == nullptr) continue;
    if (found->rounding.overflow != 0) {
      const double reached = std::abs(found->range.lowest.value_or(0)) > found->range.highest.value_or(0)
                                 ? found->range.lowest.value_or(0)
                                 : found->range.highest.value_or(0);
      const std::string what =
          fmt::format("reaches {:.4g}, and the largest value of {} is {:g}", reached, name, largest);
      if (may_be_minus_infinity(measured, *value, largest)) {
        masks.push_back({value, what});
      } else {
        keep_makers_and_readers(kept, *value, WhyKept::overflow, what);
      }
    } else if (found->counts_wrongly() && is_counted(*value)) {
      keep_makers_and_readers(
          kept, *value, WhyKept::integers,
          fmt::format("contains integers up to {:.6g}, which {} rounds", found->range.largest(), name));
    }
  }
  return masks;
}

void keep_sums(KeptNodes& kept, const MeasuredTensors& measured, report::Precision precision) {
  const double largest = verify::largest_of(precision);
  for (const auto& [node, range] : measured.sums) {
    if (range.largest() <= largest && range.infinite == 0) continue;
    keep(kept, *node, WhyKept::sum,
         fmt::format("its internal sums reach {:.4g}, and the largest value of {} is {:g}",
                     range.infinite == 0 ? range.largest() : std::numeric_limits<double>::infinity(),
                     to_string(precision), largest));
  }
}

}  // namespace graft::quant

// Pass unfreeze_batch: changes nodes that fit only a batch of 1, where the inputs declare a dynamic batch.
//
//   Reshape(x, [1, 768, 196])      becomes  Reshape(x, [-1, 768, 196]), where x is [batch, 768, 14, 14]
//   Concat(token, x, axis 1)       becomes  Concat(Expand(token, [batch, 1, 1]), x)
//
// Exporters that trace with a batch of 1 write `x.reshape(1, 768, 196)` and a class token of [1, 1, 768] where the
// network has the batch: the model then runs with a batch of 1 only, whatever its inputs declare.
//
// The original cannot run a larger batch, so the proof compares items: each item of batches of 1, 2 and 3 must become
// what the original computes from it alone.
#include "passes/cleanup/unfreeze_batch.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "core/comparison_text.hpp"
#include "graft/error.hpp"
#include "onnx/shape_inference.hpp"
#include "passes/pipeline.hpp"
#include "runtime/engine.hpp"
#include "verify/inputs/inputs.hpp"

namespace graft::passes {
namespace {

using Numbers = std::vector<std::int64_t>;
constexpr std::array<std::int64_t, 3> proven_batches{1, 2, 3};

/// A Reshape or Concat that is correct only for a batch of 1, and the data of its replacement.
struct Frozen {
  NodeRef node;
  std::string output;               ///< The name of its output, by which a copy finds the node.
  std::string text;                 ///< A clause for messages: what fits only a batch of 1.
  Numbers target;                   ///< The new target of a Reshape.
  std::vector<std::size_t> tokens;  ///< The inputs of a Concat with a batch of 1.
  std::size_t batched = 0;          ///< An input of a Concat that has the batch.
  [[nodiscard]] std::string replacement() const {
    return target.empty() ? "Concat of one token per batch item" : fmt::format("Reshape [{}]", fmt::join(target, ", "));
  }
};

/// Returns the factor f if a dimension is f times the symbol `batch` (f is the size at a batch of 1), otherwise
/// nothing.
std::optional<std::int64_t> per_item(const Dim& dim, const std::string& batch) {
  const auto at = [&](std::int64_t size) {
    return dim.evaluate([&](const std::string& name) { return name == batch ? std::optional(size) : std::nullopt; });
  };
  constexpr std::int64_t another = 7;
  const auto one = at(1);
  const auto many = at(another);
  std::int64_t wanted = 0;
  if (!one || !many || __builtin_mul_overflow(*one, another, &wanted) || *many != wanted || *one < 1)
    return std::nullopt;
  return one;
}

/// Returns a new target that follows the dynamic batch for a Reshape whose constant target has exactly the elements of
/// one batch item, or nothing for any other node.
std::optional<Numbers> unfrozen_target(const onnx::Node& node, const std::string& batch) {
  const auto constant = node.input(1) == nullptr ? std::nullopt : node.input(1)->constant();
  auto target = constant ? constant->ints() : std::nullopt;
  if (!target || std::any_of(target->begin(), target->end(), [](std::int64_t n) { return n < 1; })) return std::nullopt;
  std::int64_t before = 1;  // the number of elements of one item that lie before the batch
  std::int64_t count = 1;
  bool found = false;
  for (const Dim& dim : *node.input(0)->shape) {
    std::optional<std::int64_t> size = dim.is_constant() ? std::optional(dim.value()) : per_item(dim, batch);
    if (!size || (!dim.is_constant() && found)) return std::nullopt;
    found = found || !dim.is_constant();
    if (!found && __builtin_mul_overflow(before, *size, &before)) return std::nullopt;
    if (__builtin_mul_overflow(count, *size, &count)) return std::nullopt;
  }
  std::int64_t wanted = 1;
  for (const std::int64_t size : *target) {
    if (__builtin_mul_overflow(wanted, size, &wanted)) return std::nullopt;
  }
  if (!found || wanted != count) return std::nullopt;
  std::int64_t reached = 1;
  for (std::int64_t& size : *target) {
    if (reached == before) {
      size = -1;
      return target;
    }
    reached *= size;
  }
  return std::nullopt;
}

/// Returns the replacement of a Concat in which some inputs have the dynamic batch and others a batch of 1, or nothing
/// for any other node.
std::optional<Frozen> frozen_concat(const onnx::Node& node, const std::string& batch) {
  Frozen frozen;
  bool has_batch = false;
  for (std::size_t i = 0; i < node.inputs.size(); ++i) {
    const onnx::Value* input = node.inputs[i];
    if (input == nullptr || !input->shape || input->shape->empty()) return std::nullopt;
    const Dim& first = input->shape->front();
    if (first == Dim::symbol(batch)) {
      if (!has_batch) frozen.batched = i;
      has_batch = true;
    } else if (first == Dim(1)) {
      frozen.tokens.push_back(i);
    } else {
      return std::nullopt;
    }
  }
  const std::int64_t axis = node.int_or("axis", 0);
  const auto rank = static_cast<std::int64_t>(node.input(0)->shape->size());
  if (!has_batch || frozen.tokens.empty() || axis == 0 || axis == -rank) return std::nullopt;
  frozen.text = fmt::format("'{}' is {}, but '{}' has the batch size", node.inputs[frozen.tokens.front()]->name,
                            to_string(*node.inputs[frozen.tokens.front()]->shape), node.inputs[frozen.batched]->name);
  return frozen;
}

std::optional<Frozen> frozen_node(const onnx::Node& node, const std::string& batch) {
  if (node.output() == nullptr || node.input(0) == nullptr || !node.input(0)->shape) return std::nullopt;
  std::optional<Frozen> frozen;
  if (node.is("Concat")) {
    frozen = frozen_concat(node, batch);
  } else if (node.is("Reshape")) {
    if (auto target = unfrozen_target(node, batch)) {
      frozen.emplace();
      frozen->text = fmt::format("it reshapes '{}', {}, to [{}]", node.input(0)->name, to_string(*node.input(0)->shape),
                                 fmt::join(*node.input(1)->constant()->ints(), ", "));
      frozen->target = *std::move(target);
    }
  }
  if (!frozen) return std::nullopt;
  frozen->node = ref_of(node);
  frozen->output = node.output()->name;
  return frozen;
}

void unfreeze(onnx::Graph& graph, const Frozen& frozen) {
  onnx::Node& node = *graph.find(frozen.output)->producer;
  if (!frozen.target.empty()) {
    graph.set_input(node, 1, graph.add_constant(frozen.output + "/shape", onnx::TensorData::from_ints(frozen.target)));
    return;
  }
  onnx::Value* batched = node.inputs[frozen.batched];
  const auto rank = batched->shape ? batched->shape->size() : 0;
  onnx::Node* size = graph.add_node("Shape", {batched}, {frozen.output + "/batch"}, &node);
  size->attributes.emplace("start", onnx::NodeAttribute(onnx::AttributeData(std::int64_t{0})));
  size->attributes.emplace("end", onnx::NodeAttribute(onnx::AttributeData(std::int64_t{1})));
  onnx::Value* ones = graph.add_constant(frozen.output + "/ones", onnx::TensorData::from_ints(Numbers(rank - 1, 1)));
  onnx::Node* shape = graph.add_node("Concat", {size->output(), ones}, {frozen.output + "/token_shape"}, &node);
  shape->attributes.emplace("axis", onnx::NodeAttribute(onnx::AttributeData(std::int64_t{0})));
  for (const std::size_t index : frozen.tokens) {
    onnx::Node* token =
        graph.add_node("Expand", {node.inputs[index], shape->output()}, {frozen.output + "/tokens"}, &node);
    graph.set_input(node, index, token->output());
  }
}

/// Returns the symbol that the inputs declare for the batch, or nothing if they do not declare exactly one.
std::optional<std::string> batch_of(const onnx::Model& model) {
  std::set<std::string> names;
  for (const onnx::Value* input : model.graph().inputs()) {
    if (!input->shape || input->shape->empty()) continue;
    const Dim& first = input->shape->front();
    if (first.kind() == Dim::Kind::symbol) names.insert(first.name());
  }
  return names.size() == 1 ? std::optional(*names.begin()) : std::nullopt;
}

bool has_batch(const onnx::Value& value, const std::string& batch) {
  return value.shape && !value.shape->empty() && value.shape->front() == Dim::symbol(batch);
}

/// Changes all nodes of `model` that are correct only for a batch of 1, so that they follow the dynamic batch, and
/// returns them in the order in which they were found. Repeats the search after each change with shapes that are
/// inferred again.
std::vector<Frozen> find_and_unfreeze(onnx::Model& model, const std::string& batch) {
  std::vector<Frozen> all;
  constexpr int most_rounds = 4096;
  for (int round = 0; round < most_rounds; ++round) {
    std::vector<Frozen> found;
    for (const onnx::Node* node : model.graph().nodes()) {
      if (auto frozen = frozen_node(*node, batch)) found.push_back(*std::move(frozen));
    }
    if (found.empty()) break;
    for (const Frozen& frozen : found) unfreeze(model.graph(), frozen);
    all.insert(all.end(), found.begin(), found.end());
    std::map<std::string, Shape, std::less<>> shapes;
    for (const onnx::Value* input : model.graph().inputs()) {
      if (input->shape) shapes.emplace(input->name, *input->shape);
    }
    infer_shapes(model, shapes);
  }
  return all;
}

onnx::TensorData item_of(const onnx::TensorData& tensor, std::int64_t index) {
  onnx::TensorData item = tensor;
  const auto count = static_cast<std::size_t>(tensor.dims.front());
  const std::size_t bytes = tensor.bytes.size() / count;
  item.dims.front() = 1;
  item.bytes = onnx::Bytes(std::string(tensor.bytes.view().substr(static_cast<std::size_t>(index) * bytes, bytes)));
  return item;
}

/// Runs the changed model on batches and the original model on each item of the batch alone, and compares the results.
/// Returns a description of the first difference, or an empty string. Adds the number of compared items to `runs`.
std::string disagreement(const runtime::Engine& engine, const onnx::Model& original, const onnx::Model& mended,
                         const std::string& batch, const verify::ProofOptions& options, std::size_t& runs) {
  const std::unique_ptr<runtime::CompiledModel> alone = engine.compile(original);
  const std::unique_ptr<runtime::CompiledModel> together = engine.compile(mended);
  for (const std::int64_t size : proven_batches) {
    for (std::uint64_t seed = options.seed; seed < options.seed + options.seeds; ++seed) {
      verify::InputOptions made;
      made.seed = seed;
      made.dims[batch] = size;
      const runtime::TensorMap inputs = verify::make_inputs(mended, made);
      const runtime::TensorMap found = together->run(inputs);
      for (std::int64_t index = 0; index < size; ++index) {
        runtime::TensorMap item = inputs;
        for (const onnx::Value* input : mended.graph().inputs()) {
          if (has_batch(*input, batch)) item.at(input->name) = item_of(item.at(input->name), index);
        }
        const runtime::TensorMap expected = alone->run(item);
        ++runs;
        for (const onnx::Value* output : mended.graph().outputs()) {
          const onnx::TensorData& reference = expected.at(output->name);
          const onnx::TensorData& all = found.at(output->name);
          if (!has_batch(*output, batch) || all.dims.empty() || all.dims.front() != size) {
            return fmt::format("the first dimension of output '{}' is not the batch", output->name);
          }
          const verify::Difference difference =
              verify::compare(reference, item_of(all, index), verify::network_tolerance(reference.type));
          if (!difference.equal()) {
            return fmt::format("output '{}', item {} of {}: {}", output->name, index, size,
                               report::difference_text(difference));
          }
        }
      }
    }
  }
  return "";
}

}  // namespace

void unfreeze_batch(Rewriter& rewriter) {
  onnx::Model& model = rewriter.model();
  const auto batch = batch_of(model);
  if (!batch || model.graph().opset() < 15) return;  // before, Shape has no start and no end
  onnx::Model mended = model.clone();
  std::vector<Frozen> frozen;
  std::string trouble;
  try {
    frozen = find_and_unfreeze(mended, *batch);
  } catch (const Error& error) {
    trouble = error.what();
  }
  if (frozen.empty()) return;
  std::vector<NodeRef> nodes;
  for (const Frozen& one : frozen) nodes.push_back(one.node);
  const std::string what =
      fmt::format("{}: the inputs declare a dynamic batch '{}', but this node is valid only for a batch of 1: {}{}",
                  onnx::describe(frozen.front().node), *batch, frozen.front().text,
                  frozen.size() == 1 ? "" : fmt::format("; so are {} other nodes", frozen.size() - 1));
  const std::string replacement =
      frozen.size() == 1 ? frozen.front().replacement() : fmt::format("{} nodes with a dynamic batch", frozen.size());
  const std::string reason = "the inputs declare a dynamic batch, but these nodes are valid only for a batch of 1";
  if (rewriter.was_rejected(nodes, replacement)) return;
  std::string proof = "not proven, as requested";
  if (rewriter.options().prove && trouble.empty()) {
    std::size_t runs = 0;
    try {
      trouble = disagreement(rewriter.engine(), model, mended, *batch, rewriter.options().proof, runs);
    } catch (const Error& error) {
      trouble = error.what();
    }
    proof = fmt::format(
        "each item of batches of {} has the result that the original model computes for the item alone, {} runs",
        fmt::join(proven_batches, ", "), runs);
  }
  if (!trouble.empty()) {
    rewriter.record_rejected({.nodes = std::move(nodes)}, replacement, reason, trouble);
    rewriter.warn(what + "; no other batch size runs");
    return;
  }
  for (const Frozen& one : frozen) unfreeze(model.graph(), one);
  rewriter.record({.nodes = std::move(nodes)}, replacement, reason, proof);
  rewriter.warn(rewriter.options().prove
                    ? fmt::format("{}; the converted model supports every batch size ({})", what, proof)
                    : what + "; `graft convert` makes the batch of these nodes dynamic if it can prove the change");
}

}  // namespace graft::passes

// Pass fold_constants: what depends on nothing but constants is calculated now.
//
// Left as they are: random numbers; QuantizeLinear and DequantizeLinear, whose scales TensorRT wants to see; results
// that are much larger than what they are made from; outputs of the network.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "adapters/openvino/cpu_engine.hpp"
#include "graft/error.hpp"
#include "graph/extract.hpp"
#include "graph/shape_inference.hpp"
#include "passes/passes.hpp"
#include "passes/pipeline.hpp"
#include "passes/rewriter.hpp"

namespace graft {
namespace {

/// A result may take so many bytes more than the constants it is made from.
constexpr std::int64_t allowed_growth = 1 << 20;

constexpr std::array<std::string_view, 10> left_alone = {
    "RandomNormal", "RandomNormalLike", "RandomUniform",  "RandomUniformLike", "Multinomial",
    "Bernoulli",    "Dropout",          "QuantizeLinear", "DequantizeLinear",  "DynamicQuantizeLinear"};

/// Nothing where a dimension is not known, or the product exceeds 64 bits.
std::optional<std::int64_t> bytes_of(const Value& value) {
  if (!value.type || !value.shape) return std::nullopt;
  std::int64_t count = 1;
  for (const Dim& dim : *value.shape) {
    if (!dim.is_constant() || __builtin_mul_overflow(count, dim.value(), &count)) return std::nullopt;
  }
  std::int64_t bits = 0;
  if (__builtin_mul_overflow(count, static_cast<std::int64_t>(bits_of(*value.type)), &bits)) return std::nullopt;
  return bits / 8;
}

/// Types that the CPU engine calculates exactly.
bool is_calculable(const Value& value) {
  return value.type && (*value.type == ElementType::f64 || to_dtype(*value.type) != std::nullopt);
}

class ConstantRegion {
 public:
  explicit ConstantRegion(Graph& graph) {
    for (Node* node : graph.nodes()) {
      if (can_fold(*node)) members_.insert(node);
    }
    for (Node* node : graph.nodes()) {
      if (!members_.contains(node)) continue;
      for (Value* output : node->outputs) {
        if (output != nullptr && is_read_outside(*output)) results_.push_back(output);
      }
    }
  }

  /// The values that the rest of the graph reads.
  [[nodiscard]] const std::vector<Value*>& results() const { return results_; }

  /// What goes with one result.
  [[nodiscard]] std::vector<std::string> nodes_of(const Value& result) const {
    std::vector<std::string> names;
    std::unordered_set<const Node*> seen;
    std::vector<const Node*> waiting{result.producer};
    while (!waiting.empty()) {
      const Node* node = waiting.back();
      waiting.pop_back();
      if (node == nullptr || !members_.contains(node) || !seen.insert(node).second) continue;
      names.push_back(describe(*node));
      for (const Value* input : node->inputs) {
        if (input != nullptr) waiting.push_back(input->producer);
      }
    }
    std::reverse(names.begin(), names.end());
    return names;
  }

 private:
  [[nodiscard]] bool is_known(const Value& value) const {
    return value.constant().has_value() || (value.producer != nullptr && members_.contains(value.producer));
  }

  [[nodiscard]] bool can_fold(const Node& node) const {
    if (!node.domain.empty() || node.inputs.empty() || !node.subgraphs().empty() || node.is("Constant")) return false;
    if (std::find(left_alone.begin(), left_alone.end(), node.op_type) != left_alone.end()) return false;
    std::int64_t source_bytes = 0;
    for (const Value* input : node.inputs) {
      if (input == nullptr) continue;
      if (!is_known(*input) || !is_calculable(*input)) return false;
      const auto bytes = bytes_of(*input);
      if (!bytes || __builtin_add_overflow(source_bytes, *bytes, &source_bytes)) return false;
    }
    std::int64_t most = 0;
    if (__builtin_add_overflow(source_bytes, allowed_growth, &most)) return false;
    return std::all_of(node.outputs.begin(), node.outputs.end(), [&](const Value* output) {
      if (output == nullptr) return true;
      const auto bytes = bytes_of(*output);
      return !output->is_output() && is_calculable(*output) && bytes && *bytes <= most;
    });
  }

  [[nodiscard]] bool is_read_outside(const Value& value) const {
    return std::any_of(value.uses.begin(), value.uses.end(),
                       [&](const Use& use) { return !members_.contains(use.node); });
  }

  std::unordered_set<const Node*> members_;
  std::vector<Value*> results_;
};

/// Puts a constant in the place of a value, under the value's own name.
void replace_by_constant(Graph& graph, Value& value, TensorData tensor) {
  std::string name = value.name;
  Value* constant = graph.add_constant(name, std::move(tensor));
  graph.replace_all_uses(value, *constant);
  graph.rename(value, graph.unique_name(name + "_before"));
  graph.rename(*constant, std::move(name));
}

/// Tensors of Constant nodes become initialisers, which every reader takes for weights.
void constants_to_initializers(Rewriter& rewriter, Graph& graph) {
  std::size_t count = 0;
  for (Node* node : graph.nodes()) {
    if (!node->is("Constant")) continue;
    Value* output = node->output();
    auto tensor = output == nullptr || output->is_output() ? std::nullopt : output->constant();
    if (!tensor) continue;
    tensor->name.clear();
    replace_by_constant(graph, *output, *std::move(tensor));
    graph.remove_node(*node);
    ++count;
  }
  if (count == 0) return;
  rewriter.record({fmt::format("{} Constant nodes", count)}, "initialisers", "the same tensors",
                  "by definition: the bytes are the same");
}

/// The shapes that follow from the inputs of the network. Folding a shape needs no proof, so nothing may come in that
/// the file merely declares: inner values keep the old sizes when somebody makes the inputs of a model dynamic.
class ProvenShapes {
 public:
  explicit ProvenShapes(Rewriter& rewriter) : copy_(rewriter.model().clone()) {
    ConvertReport ignored;
    Rewriter of_copy(copy_, {}, ignored);
    const std::vector<Graph*> originals = rewriter.graphs();
    const std::vector<Graph*> copies = of_copy.graphs();
    for (std::size_t i = 0; i < copies.size(); ++i) {
      copies_.emplace(originals[i], copies[i]);
      if (i == 0) continue;  // the main graph, whose inputs the caller vouches for
      for (Value* input : copies[i]->inputs()) input->shape.reset();
    }
    infer_shapes(copy_, {});
  }

  /// Null where it does not follow.
  [[nodiscard]] const Shape* of(const Value& value) const {
    const auto graph = copies_.find(value.graph);
    const Value* found = graph == copies_.end() ? nullptr : graph->second->find_local(value.name);
    return found == nullptr || !found->shape ? nullptr : &*found->shape;
  }

 private:
  Model copy_;
  std::unordered_map<const Graph*, const Graph*> copies_;
};

/// Shape of a tensor whose dimensions in question are all fixed.
std::optional<TensorData> static_shape(const Node& node, const ProvenShapes& shapes) {
  if (!node.is("Shape") || node.input(0) == nullptr) return std::nullopt;
  const Shape* shape = shapes.of(*node.input(0));
  if (shape == nullptr) return std::nullopt;
  const auto rank = static_cast<std::int64_t>(shape->size());
  const auto clamp = [&](std::int64_t index) {
    return std::clamp<std::int64_t>(index < 0 ? index + rank : index, 0, rank);
  };
  const std::int64_t begin = clamp(node.int_or("start", 0));
  const std::int64_t end = clamp(node.int_or("end", rank));
  std::vector<std::int64_t> dims;
  for (std::int64_t i = begin; i < end; ++i) {
    const Dim& dim = (*shape)[static_cast<std::size_t>(i)];
    if (!dim.is_constant()) return std::nullopt;
    dims.push_back(dim.value());
  }
  return TensorData::from_ints(dims);
}

void fold_shapes(Rewriter& rewriter, Graph& graph, const ProvenShapes& shapes) {
  for (Node* node : graph.nodes()) {
    const auto dims = static_shape(*node, shapes);
    if (!dims || node->output() == nullptr || node->output()->is_output() || node->output()->is_unused()) continue;
    rewriter.record({describe(*node)}, to_string(*dims), "these dimensions are fixed",
                    "by definition: they follow from the model's inputs");
    replace_by_constant(graph, *node->output(), *dims);
  }
}

void fold_region(Rewriter& rewriter, Graph& graph) {
  const ConstantRegion region(graph);
  for (Value* result : region.results()) {
    TensorMap values;
    try {
      values = evaluate_constant_graph(extract(rewriter.model(), {}, {result}));
    } catch (const Error&) {
      continue;  // the engine cannot calculate it: it stays, and runs where it ran before
    }
    const auto found = values.find(result->name);
    if (found == values.end() || found->second.type != *result->type) continue;
    const auto declared = bytes_of(*result);
    const auto actual = static_cast<std::int64_t>(found->second.bytes.size());
    if (declared ? *declared != actual : actual > allowed_growth) continue;
    rewriter.record(region.nodes_of(*result), to_string(found->second, 4), "depends on constants only",
                    "calculated by the CPU engine");
    replace_by_constant(graph, *result, found->second);
  }
}

}  // namespace

void fold_constants(Rewriter& rewriter) {
  const std::vector<Graph*> graphs = rewriter.graphs();
  for (Graph* graph : graphs) constants_to_initializers(rewriter, *graph);
  const ProvenShapes shapes(rewriter);
  for (Graph* graph : graphs) {
    fold_shapes(rewriter, *graph, shapes);
    fold_region(rewriter, *graph);
  }
}

}  // namespace graft

// Pass fold_constants: computes what depends only on constants, and replaces an If whose condition is constant by the
// branch that runs.
//
//   Mul(x, Add(a, b))          becomes   Mul(x, c)       where a and b are constants and c = a + b
//   Shape(x)                   becomes   [1, 3, 8, 8]    where x always has this shape
//   Gather(Shape(x), 1)        becomes   3               where x is [N, 3, H, W]
//   Constant<value=[1, 2]>()   becomes   an initializer
//
// The pass leaves out: random numbers; QuantizeLinear and DequantizeLinear, whose scales TensorRT must see (except for
// biases of 32 bits, which ONNX Runtime's quantizer writes and TensorRT refuses); results that are much larger than the
// constants that they are computed from; outputs of the network.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "graft/error.hpp"
#include "onnx/extract.hpp"
#include "onnx/schema.hpp"
#include "onnx/shape_inference.hpp"
#include "passes/cleanup/constant_branches.hpp"
#include "passes/cleanup/proven_shapes.hpp"
#include "passes/passes.hpp"
#include "passes/rewriter.hpp"
#include "runtime/engine.hpp"

namespace graft::passes {
namespace {

/// The number of bytes by which a folded result may be larger than the constants from which it is computed.
constexpr std::int64_t allowed_growth = 1 << 20;
/// The size, in bytes, at which a batch of results is computed: results are added to one run of the engine until their
/// total size reaches this number.
constexpr std::int64_t bytes_at_once = 1 << 26;

/// Returns whether a node is never folded. This holds for random operators, for Dropout, whose result is random in
/// training mode, and for QuantizeLinear, DequantizeLinear and similar operators, from which TensorRT recognizes int8
/// layers.
bool is_left_alone(const onnx::Node& node) {
  return has_trait(node, onnx::trait::random | onnx::trait::scales_integers) || node.is("Dropout");
}

/// Returns the size of a tensor in bytes, or nothing if its type or a dimension is unknown or the product exceeds 64
/// bits.
std::optional<std::int64_t> bytes_of(const onnx::Value& value) {
  if (!value.type || !value.shape) return std::nullopt;
  std::int64_t count = 1;
  for (const Dim& dim : *value.shape) {
    if (!dim.is_constant() || __builtin_mul_overflow(count, dim.value(), &count)) return std::nullopt;
  }
  std::int64_t bits = 0;
  if (__builtin_mul_overflow(count, static_cast<std::int64_t>(bits_of(*value.type)), &bits)) return std::nullopt;
  return bits / 8;
}

/// Returns whether the engine can compute tensors of the element type of `value`: f64 and the types that Graft's
/// kernels support (DType).
bool is_calculable(const onnx::Value& value) {
  return value.type && (*value.type == onnx::ElementType::f64 || to_dtype(*value.type) != std::nullopt);
}

class ConstantRegion {
 public:
  /// Collects the nodes of `graph` that can be folded. A node with a result of more than `most_bytes` bytes is not
  /// folded: a chain of nodes that each double a tensor would otherwise produce constants of unlimited size.
  ConstantRegion(onnx::Graph& graph, std::int64_t most_bytes) : most_bytes_(most_bytes) {
    for (onnx::Node* node : graph.nodes()) {
      if (can_fold(*node)) members_.insert(node);
    }
    for (onnx::Node* node : graph.nodes()) {
      if (!members_.contains(node)) continue;
      for (onnx::Value* output : node->outputs) {
        if (output != nullptr && is_read_outside(*output)) results_.push_back(output);
      }
    }
  }

  /// Returns the outputs of nodes that can be folded, if a node that cannot be folded reads them. These are the values
  /// to compute.
  [[nodiscard]] const std::vector<onnx::Value*>& results() const { return results_; }

  /// Returns the nodes that compute `result` and are folded with it, for the report: at most 32 of them, the nodes
  /// nearest to the result first.
  [[nodiscard]] Rewriter::Subject nodes_of(const onnx::Value& result) const {
    constexpr std::size_t most = 32;  // with all nodes, the report would grow with the square of the graph
    Rewriter::Subject subject;
    std::unordered_set<const onnx::Node*> seen;
    std::vector<const onnx::Node*> waiting{result.producer};
    while (!waiting.empty()) {
      const onnx::Node* node = waiting.back();
      waiting.pop_back();
      if (node == nullptr || !members_.contains(node) || !seen.insert(node).second) continue;
      if (subject.nodes.size() == most) {
        subject.others = "more nodes before them";
        break;
      }
      subject.nodes.push_back(ref_of(*node));
      for (const onnx::Value* input : node->inputs) {
        if (input != nullptr) waiting.push_back(input->producer);
      }
    }
    std::reverse(subject.nodes.begin(), subject.nodes.end());
    return subject;
  }

 private:
  [[nodiscard]] bool is_known(const onnx::Value& value) const {
    return value.constant().has_value() || (value.producer != nullptr && members_.contains(value.producer));
  }

  /// Returns whether a Div or Mod of integers may crash the process: by a division by 0, or of the lowest integer by
  /// -1. Also returns true if the divisor is not constant yet.
  [[nodiscard]] static bool may_trap(const onnx::Node& node) {
    const onnx::Value* divisor = node.is("Div") || node.is("Mod") ? node.input(1) : nullptr;
    if (divisor == nullptr || !divisor->type || !is_integer(*divisor->type)) return false;
    const auto constant = divisor->constant();
    const auto numbers = constant ? constant->ints() : std::nullopt;
    return !numbers || std::any_of(numbers->begin(), numbers->end(), [](std::int64_t n) { return n == 0 || n == -1; });
  }

  /// Returns whether the engine may return a number where ONNX returns NaN: the engine's Max, Min and Clip ignore an
  /// input that is NaN. A floating-point input that is not constant yet counts as NaN; the next round checks the node
  /// again.
  [[nodiscard]] static bool may_lose_nan(const onnx::Node& node) {
    if (!node.is("Max") && !node.is("Min") && !node.is("Clip")) return false;
    return std::any_of(node.inputs.begin(), node.inputs.end(), [](const onnx::Value* input) {
      if (input == nullptr || !input->type || !is_floating_point(*input->type)) return false;
      const auto constant = input->constant();
      const auto numbers = constant ? constant->numbers() : std::nullopt;
      return !numbers || std::any_of(numbers->begin(), numbers->end(), [](double n) { return std::isnan(n); });
    });
  }

  [[nodiscard]] static bool is_bias_of_32_bits(const onnx::Node& node) {
    return node.is("DequantizeLinear") && node.inputs.front() != nullptr &&
           node.inputs.front()->type == onnx::ElementType::i32;
  }

  [[nodiscard]] bool can_fold(const onnx::Node& node) const {
    if (!node.domain.empty() || node.inputs.empty() || !node.subgraphs().empty() || node.is("Constant")) return false;
    if (may_trap(node) || may_lose_nan(node)) return false;
    if (is_left_alone(node) && !is_bias_of_32_bits(node)) return false;
    std::int64_t source_bytes = 0;
    for (const onnx::Value* input : node.inputs) {
      if (input == nullptr) continue;
      if (!is_known(*input) || !is_calculable(*input)) return false;
      const auto bytes = bytes_of(*input);
      if (!bytes || __builtin_add_overflow(source_bytes, *bytes, &source_bytes)) return false;
    }
    std::int64_t most = 0;
    if (__builtin_add_overflow(source_bytes, allowed_growth, &most)) return false;
    most = std::min(most, most_bytes_);
    return std::all_of(node.outputs.begin(), node.outputs.end(), [&](const onnx::Value* output) {
      if (output == nullptr) return true;
      const auto bytes = bytes_of(*output);
      return !output->is_output() && is_calculable(*output) && bytes && *bytes <= most;
    });
  }

  [[nodiscard]] bool is_read_outside(const onnx::Value& value) const {
    return std::any_of(value.uses.begin(), value.uses.end(),
                       [&](const onnx::Use& use) { return !members_.contains(use.node); });
  }

  std::int64_t most_bytes_;
  std::unordered_set<const onnx::Node*> members_;
  std::vector<onnx::Value*> results_;
};

/// Replaces a value by a constant with this tensor. The constant gets the value's name.
void replace_by_constant(onnx::Graph& graph, onnx::Value& value, onnx::TensorData tensor) {
  std::string name = value.name;
  onnx::Value* constant = graph.add_constant(name, std::move(tensor));
  graph.replace_all_uses(value, *constant);
  graph.rename(value, graph.unique_name(name + "_before"));
  graph.rename(*constant, std::move(name));
}

/// Replaces each Constant node of the graph by an initializer, which all importers treat as a weight.
void constants_to_initializers(Rewriter& rewriter, onnx::Graph& graph) {
  std::size_t count = 0;
  for (onnx::Node* node : graph.nodes()) {
    if (!node->is("Constant")) continue;
    onnx::Value* output = node->output();
    auto tensor = output == nullptr || output->is_output() ? std::nullopt : output->constant();
    if (!tensor) continue;
    tensor->name.clear();
    replace_by_constant(graph, *output, *std::move(tensor));
    graph.remove_node(*node);
    ++count;
  }
  if (count == 0) return;
  rewriter.record({.others = fmt::format("{} Constant nodes", count)}, "initializers", "the same tensors",
                  "by definition: the bytes are the same");
}

/// Returns the dimensions that a Shape node returns, or nothing for other nodes and for tensors of unknown rank.
std::optional<Shape> dimensions_of(const onnx::Node* node, const ProvenShapes& shapes) {
  if (node == nullptr || !node->is("Shape") || node->input(0) == nullptr) return std::nullopt;
  const Shape* shape = shapes.of(*node->input(0));
  if (shape == nullptr) return std::nullopt;
  const auto rank = static_cast<std::int64_t>(shape->size());
  const auto clamp = [&](std::int64_t index) {
    return std::clamp<std::int64_t>(index < 0 ? index + rank : index, 0, rank);
  };
  const std::int64_t begin = clamp(node->int_or("start", 0));
  const std::int64_t end = std::max(begin, clamp(node->int_or("end", rank)));
  return Shape(shape->begin() + begin, shape->begin() + end);
}

/// Returns the dimensions that a Gather or Slice with constant positions selects from the result of a Shape, or nothing
/// for other nodes.
std::optional<Shape> selected_dimensions(const onnx::Node& node, const ProvenShapes& shapes) {
  if (!onnx::is_any_of(node, {"Gather", "Slice"}) || node.input(0) == nullptr) return std::nullopt;
  const auto all = dimensions_of(node.input(0)->producer, shapes);
  const auto first = onnx::constant_ints(node.input(1));
  if (!all || !first) return std::nullopt;
  const auto rank = static_cast<std::int64_t>(all->size());
  Shape selected;
  if (node.is("Gather")) {
    for (const std::int64_t index : *first) {
      const std::int64_t at = index < 0 ? index + rank : index;
      if (at < 0 || at >= rank) return std::nullopt;
      selected.push_back((*all)[static_cast<std::size_t>(at)]);
    }
    return selected;
  }
  const auto last = onnx::constant_ints(node.input(2));
  const auto steps =
      node.input(4) == nullptr ? std::optional(std::vector<std::int64_t>{1}) : onnx::constant_ints(node.input(4));
  if (first->size() != 1 || !last || last->size() != 1 || steps != std::vector<std::int64_t>{1}) return std::nullopt;
  const auto clamp = [&](std::int64_t index) {
    return std::clamp<std::int64_t>(index < 0 ? index + rank : index, 0, rank);
  };
  for (std::int64_t at = clamp(first->front()); at < clamp(last->front()); ++at) {
    selected.push_back((*all)[static_cast<std::size_t>(at)]);
  }
  return selected;
}

/// Returns the product of the sizes, or nothing if a size is dynamic or the product exceeds 53 bits.
std::optional<std::int64_t> count_elements(const Shape& shape) {
  constexpr std::int64_t most = std::int64_t{1} << 53;
  std::int64_t count = 1;
  for (const Dim& dim : shape) {
    if (!dim.is_constant() || __builtin_mul_overflow(count, dim.value(), &count) || count > most) return std::nullopt;
  }
  return count;
}

/// Returns the result of a Shape or Size node, or of a Gather or Slice of a Shape, if all dimensions in it are fixed;
/// otherwise nothing.
std::optional<onnx::TensorData> static_shape(const onnx::Node& node, const ProvenShapes& shapes) {
  const Shape* counted = node.is("Size") && node.input(0) != nullptr ? shapes.of(*node.input(0)) : nullptr;
  if (const auto count = counted == nullptr ? std::nullopt : count_elements(*counted)) {
    return onnx::TensorData::from_numbers(onnx::ElementType::i64, {}, {static_cast<double>(*count)});
  }
  std::optional<Shape> dimensions = dimensions_of(&node, shapes);
  if (!dimensions) dimensions = selected_dimensions(node, shapes);
  if (!dimensions) return std::nullopt;
  std::vector<std::int64_t> dims;
  for (const Dim& dim : *dimensions) {
    if (!dim.is_constant()) return std::nullopt;
    dims.push_back(dim.value());
  }
  onnx::TensorData tensor = onnx::TensorData::from_ints(dims);
  if (node.is("Gather")) {  // which has the shape of its indices
    const auto indices = node.input(1)->constant();
    tensor.dims = indices->dims;
  }
  return tensor;
}

/// Replaces the results of Shape, Size, and Gather and Slice of a Shape by constants where the dimensions are fixed,
/// and returns whether there were any.
bool fold_shapes(Rewriter& rewriter, onnx::Graph& graph, const ProvenShapes& shapes) {
  bool folded = false;
  for (onnx::Node* node : graph.nodes()) {
    const auto dims = static_shape(*node, shapes);
    if (!dims || node->output() == nullptr || node->output()->is_output() || node->output()->is_unused()) continue;
    rewriter.record({.nodes = {ref_of(*node)}}, to_string(*dims), "these dimensions are fixed",
                    "by definition: they follow from the model's inputs");
    replace_by_constant(graph, *node->output(), *dims);
    folded = true;
  }
  return folded;
}

using Computed = std::unordered_map<const onnx::Value*, onnx::TensorData>;

/// Computes `results` in one run of the engine, because each run has a fixed cost, and adds their values to `computed`.
/// If the engine refuses the run, splits the results in two halves and runs each. A result that the engine refuses
/// alone is not added to `computed` and stays in the graph.
void compute(const runtime::Engine& engine, const onnx::Model& model, std::span<onnx::Value* const> results,
             Computed& computed) {
  std::vector<const onnx::Value*> outputs;
  std::vector<std::pair<const onnx::Value*, const onnx::Value*>> sources;
  for (const onnx::Value* result : results) {
    // The engine does not look through Identity nodes.
    const onnx::Value* value = result;
    while (value->producer != nullptr && value->producer->is("Identity")) value = value->producer->input(0);
    if (auto constant = value->constant()) {
      constant->name.clear();
      computed.emplace(result, *std::move(constant));
      continue;
    }
    sources.emplace_back(result, value);
    if (std::find(outputs.begin(), outputs.end(), value) == outputs.end()) outputs.push_back(value);
  }
  if (outputs.empty()) return;
  try {
    onnx::Model part = extract(model, {}, outputs);
    for (const onnx::Node* node : part.graph().nodes()) {
      if (node->is("Identity")) part.graph().replace_all_uses(*node->output(), *node->input(0));
    }
    part.graph().remove_dead();
    const runtime::TensorMap values = engine.evaluate_constant_graph(part);
    for (const auto& [result, source] : sources) {
      const auto found = values.find(source->name);
      if (found != values.end()) computed.emplace(result, found->second);
    }
  } catch (const Error&) {
    if (outputs.size() == 1) return;
    const std::size_t half = results.size() / 2;
    compute(engine, model, results.first(half), computed);
    compute(engine, model, results.subspan(half), computed);
  }
}

/// Returns the total size, in bytes, of the constants of all graphs. The limit for folded results is derived from it.
std::int64_t constant_bytes(const std::vector<onnx::Graph*>& graphs) {
  std::int64_t bytes = 0;
  for (const onnx::Graph* graph : graphs) {
    for (const onnx::Value* value : graph->initializers()) {
      bytes += static_cast<std::int64_t>(value->initializer->bytes.size());
    }
  }
  return bytes;
}

/// Replaces the foldable results of a graph by constants, and returns whether there were any. `room` is the number of
/// bytes that new constants may still use; the sizes of the new constants are subtracted from it.
bool fold_region(Rewriter& rewriter, onnx::Graph& graph, std::int64_t& room) {
  bool folded = false;
  const ConstantRegion region(graph, room);
  const std::vector<onnx::Value*>& results = region.results();
  for (std::size_t next = 0; next < results.size();) {
    std::vector<onnx::Value*> together;
    for (std::int64_t bytes = 0; next < results.size() && bytes < bytes_at_once; ++next) {
      const std::int64_t wanted = bytes_of(*results[next]).value_or(0);
      if (wanted > room - bytes) continue;
      bytes += wanted;
      together.push_back(results[next]);
    }
    Computed computed;
    compute(rewriter.engine(), rewriter.model(), together, computed);
    for (onnx::Value* result : together) {
      const auto found = computed.find(result);
      if (found == computed.end() || found->second.type != *result->type) continue;
      const auto declared = bytes_of(*result);
      const auto actual = static_cast<std::int64_t>(found->second.bytes.size());
      if (actual > room || (declared ? *declared != actual : actual > allowed_growth)) continue;
      room -= actual;
      rewriter.record(region.nodes_of(*result), to_string(found->second, 4), "depends on constants only",
                      "computed by the CPU engine");
      replace_by_constant(graph, *result, std::move(found->second));
      folded = true;
    }
  }
  return folded;
}

}  // namespace

void fold_constants(Rewriter& rewriter) {
  for (onnx::Graph* graph : rewriter.graphs()) constants_to_initializers(rewriter, *graph);
  const std::int64_t taken = constant_bytes(rewriter.graphs());
  std::int64_t room = std::max(allowed_growth, rewriter.most_constant_bytes(2 * taken + 8 * allowed_growth) - taken);
  // A round may fold a size on which the size of the next result depends.
  constexpr int most_rounds = 16;
  for (int round = 0; round < most_rounds; ++round) {
    if (inline_constant_branches(rewriter)) {
      rewriter.end();
      infer_shapes(rewriter.model());
    }
    const ProvenShapes shapes(rewriter);
    bool folded = false;
    for (onnx::Graph* graph : rewriter.graphs()) {
      folded = fold_shapes(rewriter, *graph, shapes) || folded;
      folded = fold_region(rewriter, *graph, room) || folded;
    }
    if (!folded) break;
    rewriter.end();
    infer_shapes(rewriter.model());
  }
}

}  // namespace graft::passes

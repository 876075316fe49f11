// y = Add(x, c) becomes raw = Add(x, c * factors), y = raw * factors. Each place uses a different window of the input
// `factors`.
#include "verify/judge/rounding_noise.hpp"

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <numeric>
#include <optional>
#include <set>
#include <string_view>
#include <unordered_set>
#include <utility>
#include <vector>

#include "graft/error.hpp"
#include "onnx/functions.hpp"
#include "onnx/operator_calls.hpp"
#include "onnx/opset.hpp"
#include "onnx/schema.hpp"
#include "onnx/shape_inference.hpp"
#include "runtime/model_io.hpp"

namespace graft::verify {
namespace {

using onnx::ElementType;
using onnx::Graph;
using onnx::Node;
using onnx::TensorData;
using onnx::Value;

/// The relative size of the noise, in epsilons of the type. Vectorized functions such as exp and tanh have errors of
/// this size.
constexpr double epsilons = 4;
/// The limit up to which integers in floating-point tensors get no noise. They are usually indices, sizes and counts,
/// and arithmetic with them is exact.
constexpr double largest_kept_integer = 65536;
/// The largest magnitude of an f32 element that gets noise. The product of a larger element and a noise factor could
/// overflow.
constexpr double largest_moved_f32 = 1e38;
constexpr double largest_moved_f64 = 1e307;
/// The ratio of the epsilon of f64 to that of f32.
constexpr double f64_share = 0x1p-29;
/// The lowest opset of the noisy model: from it on, Reshape has `allowzero`, and Clip, Equal and Where accept the types
/// that are used here.
constexpr std::int64_t lowest_opset = 14;
/// The opset from which on all reductions read their axes from an input, not from an attribute.
constexpr std::int64_t axes_are_inputs = 18;
/// The number of different noise factors. Larger tensors repeat them.
constexpr std::int64_t factor_count = std::int64_t{1} << 17;
/// The distance between the first factors that two consecutive tensors use. It is a prime number, so that the windows
/// of different tensors begin at different factors.
constexpr std::int64_t between_windows = 7919;

bool is_wide(const Value* value) {
  return value != nullptr && (value->type == ElementType::f32 || value->type == ElementType::f64);
}

bool is_small_integer(double x) { return std::abs(x) <= largest_kept_integer && x == std::trunc(x); }

bool holds_small_integers(const TensorData& tensor) {
  const auto numbers = tensor.numbers();
  return numbers && std::all_of(numbers->begin(), numbers->end(), is_small_integer);
}

bool is_one_of(const Node& node, const std::set<std::string_view>& names) {
  return node.domain.empty() && names.contains(node.op_type);
}

/// Returns whether a node adds no rounding error to that of its inputs. A Cast from f64 to f32 counts as exact: every
/// engine rounds the same number to the same result, and the noise of its f64 input already affects it.
bool is_exact(const Node& node) {
  static const std::set<std::string_view> names{"Abs",
                                                "ArgMax",
                                                "ArgMin",
                                                "Bernoulli",
                                                "Cast",
                                                "CastLike",
                                                "Ceil",
                                                "CenterCropPad",
                                                "Clip",
                                                "Compress",
                                                "Constant",
                                                "ConstantOfShape",
                                                "Dropout",
                                                "EyeLike",
                                                "Floor",
                                                "GlobalMaxPool",
                                                "Hardmax",
                                                "Identity",
                                                "If",
                                                "Loop",
                                                "Max",
                                                "MaxPool",
                                                "MaxRoiPool",
                                                "MaxUnpool",
                                                "Min",
                                                "Mod",
                                                "Multinomial",
                                                "Neg",
                                                "NonMaxSuppression",
                                                "OneHot",
                                                "Optional",
                                                "OptionalGetElement",
                                                "Pad",
                                                "QuantizeLinear",
                                                "RandomNormal",
                                                "RandomNormalLike",
                                                "RandomUniform",
                                                "RandomUniformLike",
                                                "Range",
                                                "ReduceMax",
                                                "ReduceMin",
                                                "Relu",
                                                "Round",
                                                "Scan",
                                                "Scatter",
                                                "ScatterElements",
                                                "ScatterND",
                                                "SequenceAt",
                                                "SequenceConstruct",
                                                "SequenceEmpty",
                                                "SequenceErase",
                                                "SequenceInsert",
                                                "SequenceMap",
                                                "Sign",
                                                "SplitToSequence",
                                                "ConcatFromSequence",
                                                "TensorScatter",
                                                "ThresholdedRelu",
                                                "TopK",
                                                "Trilu",
                                                "Unique",
                                                "Where"};
  if (has_trait(node, onnx::trait::moves_data | onnx::trait::reads_shape)) return true;
  if (is_one_of(node, {"Resize", "Upsample"})) return node.string_or("mode", "nearest") == "nearest";
  return is_one_of(node, names);
}

/// Returns whether the node is elementwise arithmetic. Its constants get noise too, because another model may have
/// folded and rounded them differently.
bool is_arithmetic(const Node& node) { return is_one_of(node, {"Add", "Sub", "Mul", "Div", "Sum", "Mean"}); }

/// Returns whether the node computes sums of products of two inputs, as a convolution does.
bool is_product(const Node& node) {
  return has_trait(node, onnx::trait::weighted | onnx::trait::recurrent) ||
         is_one_of(node, {"Einsum", "DeformConv", "Attention", "LinearAttention"});
}

/// Returns the index of the bias input of a convolution or Gemm, or nothing for other nodes.
std::optional<std::size_t> bias_input(const Node& node) {
  constexpr std::size_t of_deformable = 3;
  if (is_one_of(node, {"Conv", "ConvTranspose", "Gemm"})) return 2;
  if (node.is("DeformConv")) return of_deformable;
  return std::nullopt;
}

bool is_reduction(const Node& node) {
  return is_one_of(node, {"ReduceMean", "ReduceSum", "ReduceL1", "ReduceL2", "ReduceProd", "ReduceSumSquare"});
}

/// Returns whether the node sums many elements of its first input. Operators outside ai.onnx count as if they did.
bool adds_up(const Node& node) {
  static const std::set<std::string_view> names{"ReduceLogSum",
                                                "ReduceLogSumExp",
                                                "AveragePool",
                                                "GlobalAveragePool",
                                                "LpPool",
                                                "GlobalLpPool",
                                                "Softmax",
                                                "LogSoftmax",
                                                "CumSum",
                                                "CumProd",
                                                "Resize",
                                                "Upsample",
                                                "GridSample",
                                                "RoiAlign",
                                                "LRN",
                                                "DFT",
                                                "STFT",
                                                "Det",
                                                "Col2Im",
                                                "Mean",
                                                "Sum",
                                                "LpNormalization",
                                                "RMSNormalization",
                                                "GroupNormalization",
                                                "InstanceNormalization",
                                                "LayerNormalization",
                                                "MeanVarianceNormalization",
                                                "BatchNormalization",
                                                "NegativeLogLikelihoodLoss",
                                                "SoftmaxCrossEntropyLoss"};
  return is_product(node) || is_reduction(node) || is_one_of(node, names) || !node.domain.empty();
}

/// Returns whether the result of a node consists of integers if all its inputs do.
bool keeps_integers(const Node& node) {
  return is_one_of(node, {"Add", "Sub", "Mul", "Sum", "Conv", "MatMul", "Gemm", "ReduceSum", "Cast", "CastLike"});
}

std::optional<std::vector<std::int64_t>> fixed_dims(const Value& value) {
  if (!value.shape) return std::nullopt;
  std::vector<std::int64_t> dims;
  for (const Dim& dim : *value.shape) {
    if (!dim.is_constant()) return std::nullopt;
    dims.push_back(dim.value());
  }
  return dims;
}

std::int64_t count_of(const std::vector<std::int64_t>& dims) {
  return std::accumulate(dims.begin(), dims.end(), std::int64_t{1}, std::multiplies<>());
}

bool may_move(const Value* value) {
  if (!is_wide(value)) return false;
  const auto dims = fixed_dims(*value);
  return !dims || count_of(*dims) != 0;
}

TensorData scalar(ElementType type, double number) { return TensorData::from_numbers(type, {}, {number}); }

/// Adds a node to a graph and returns its output. The caller must sort the graph topologically afterwards.
Value* add_node(Graph& graph, std::string_view op_type, std::vector<Value*> inputs, ElementType type) {
  Node* node = graph.add_node(std::string(op_type), std::move(inputs), {"noise"});
  node->output()->type = type;
  return node->output();
}

Value* with_attribute(Value* result, const std::string& name, onnx::AttributeData value) {
  result->producer->attributes.emplace(name, onnx::NodeAttribute(std::move(value)));
  return result;
}

Value* add_ints(Graph& graph, const std::vector<std::int64_t>& ints) {
  return graph.root().add_constant("noise", TensorData::from_ints(ints));
}

/// Replaces normalization nodes by nodes that compute the mean, the variance and the division separately, so that each
/// of them gets noise.
class Normalizations {
 public:
  explicit Normalizations(Graph& graph) : graph_(graph) {}

  void open() {
    for (Node* node : graph_.nodes()) {
      for (Graph* body : node->subgraphs()) Normalizations(*body).open();
      if (!node->domain.empty() || node->output() == nullptr || !is_wide(node->input(0))) continue;
      const auto has_more_outputs =
          std::any_of(node->outputs.begin() + 1, node->outputs.end(),
                      [](const Value* output) { return output != nullptr && !output->is_unused(); });
      if (has_more_outputs) continue;
      Value* opened = opened_form(*node);
      if (opened == nullptr) continue;
      graph_.replace_all_uses(*node->output(), *opened);
      graph_.remove_node(*node);
      is_changed_ = true;
    }
    if (is_changed_) graph_.topological_sort();
  }

 private:
  Value* opened_form(const Node& node) {
    type_ = *node.input(0)->type;
    if (node.is("InstanceNormalization")) return instance(node);
    if (node.is("LayerNormalization")) return layer(node);
    if (node.is("GroupNormalization")) return group(node);
    if (node.is("BatchNormalization")) return batch(node);
    if (node.is("MeanVarianceNormalization")) {
      Value* x = node.input(0);
      return normalized(x, node.ints("axes").value_or(std::vector<std::int64_t>{0, 2, 3}), 0);
    }
    return nullptr;
  }

  Value* op(std::string_view op_type, std::vector<Value*> inputs) {
    return add_node(graph_, op_type, std::move(inputs), type_);
  }
  Value* number(double value) { return graph_.root().add_constant("noise", scalar(type_, value)); }
  Value* reshaped(Value* value, const std::vector<std::int64_t>& dims) {
    return op("Reshape", {value, add_ints(graph_, dims)});
  }

  Value* mean(Value* x, const std::vector<std::int64_t>& axes) {
    if (graph_.opset() >= axes_are_inputs) return op("ReduceMean", {x, add_ints(graph_, axes)});
    return with_attribute(op("ReduceMean", {x}), "axes", axes);
  }

  Value* normalized(Value* x, const std::vector<std::int64_t>& axes, double epsilon) {
    Value* centered = op("Sub", {x, mean(x, axes)});
    Value* variance = mean(op("Mul", {centered, centered}), axes);
    if (epsilon != 0) variance = op("Add", {variance, number(epsilon)});
    return op("Div", {centered, op("Sqrt", {variance})});
  }

  static std::vector<std::int64_t> axes_from(std::int64_t first, std::int64_t rank) {
    std::vector<std::int64_t> axes;
    for (std::int64_t axis = first; axis < rank; ++axis) axes.push_back(axis);
    return axes;
  }

  /// Returns the dimensions [1, -1, 1 ...] of a tensor with one factor per channel for tensors of this rank.
  static std::vector<std::int64_t> of_channels(std::int64_t rank) {
    std::vector<std::int64_t> dims(static_cast<std::size_t>(rank), 1);
    dims[1] = -1;
    return dims;
  }

  static float epsilon_of(const Node& node) {
    constexpr float by_default = 1e-5F;
    return node.float_or("epsilon", by_default);
  }

  Value* instance(const Node& node) {
    const auto rank = node.input(0)->rank();
    if (!rank || *rank < 3) return nullptr;
    Value* y = normalized(node.input(0), axes_from(2, *rank), epsilon_of(node));
    y = op("Mul", {y, reshaped(node.input(1), of_channels(*rank))});
    return op("Add", {y, reshaped(node.input(2), of_channels(*rank))});
  }

  Value* layer(const Node& node) {
    const auto rank = node.input(0)->rank();
    if (!rank || *rank < 1) return nullptr;
    std::int64_t axis = node.int_or("axis", -1);
    if (axis < 0) axis += *rank;
    Value* y = normalized(node.input(0), axes_from(axis, *rank), epsilon_of(node));
    if (node.input(1) != nullptr) y = op("Mul", {y, node.input(1)});
    return node.input(2) == nullptr ? y : op("Add", {y, node.input(2)});
  }

  Value* group(const Node& node) {
    const auto rank = node.input(0)->rank();
    if (!rank || *rank < 2) return nullptr;
    constexpr std::int64_t scaled_by_channel = 21;
    const bool by_channel = graph_.opset() >= scaled_by_channel;
    const std::int64_t groups = node.int_or("num_groups", 1);
    Value* shape = add_node(graph_, "Shape", {node.input(0)}, ElementType::i64);
    Value* y = normalized(reshaped(node.input(0), {0, groups, -1}), {2}, epsilon_of(node));
    const auto scale = [&](const std::vector<std::int64_t>& dims) {
      y = op("Mul", {y, reshaped(node.input(1), dims)});
      y = op("Add", {y, reshaped(node.input(2), dims)});
    };
    if (!by_channel) scale({1, -1, 1});
    y = op("Reshape", {y, shape});
    if (by_channel) scale(of_channels(*rank));
    return y;
  }

  /// Returns the result of a BatchNormalization written as x * factor + summand per channel, as exporters fold it.
  /// Returns null if the node cannot be replaced.
  Value* batch(const Node& node) {
    const auto rank = node.input(0)->rank();
    if (!rank || *rank < 2 || node.int_or("training_mode", 0) != 0) return nullptr;
    if (!std::all_of(node.inputs.begin(), node.inputs.end(), is_wide)) return nullptr;
    Value* factor = op("Div", {node.input(1), op("Sqrt", {op("Add", {node.input(4), number(epsilon_of(node))})})});
    Value* of_mean = op("Mul", {node.input(3), factor});
    Value* y = op("Mul", {node.input(0), reshaped(factor, of_channels(*rank))});
    y = op("Sub", {y, reshaped(of_mean, of_channels(*rank))});
    return op("Add", {y, reshaped(node.input(2), of_channels(*rank))});
  }

  Graph& graph_;
  ElementType type_ = ElementType::f32;
  bool is_changed_ = false;
};

/// Multiplies the rounded values of a model by noise factors, which are an input of the model. Each value uses another
/// range (window) of the factors.
class Noise {
 public:
  Noise(onnx::Model& model, Value& factors, F64Noise f64_noise)
      : root_(model.graph()), factors_(factors), f64_noise_(f64_noise) {}

  void add() {
    for (const Value* input : root_.inputs()) from_data_.insert(input);
    add_to(root_, nullptr);
  }

 private:
  /// Adds noise to the values of a graph. `turn` is the iteration number if the graph is the body of a Loop, otherwise
  /// null.
  void add_to(Graph& graph, Value* turn) {
    Value* const outer_turn = std::exchange(turn_, turn);
    bool is_changed = false;
    for (Node* node : graph.nodes()) {
      bool depends = !node->subgraphs().empty();
      if (!has_trait(*node, onnx::trait::reads_shape)) {
        for (const Value* input : node->inputs) depends = depends || from_data_.contains(input);
      }
      if (!depends) continue;
      for (Graph* body : node->subgraphs()) {
        for (const Value* input : body->inputs()) from_data_.insert(input);
        const bool counts = node->is("Loop") && !body->inputs().empty();
        add_to(*body, counts ? body->inputs()[0] : turn);
      }
      for (const Value* output : node->outputs) from_data_.insert(output);
      move_operands(*node);
      if (!is_exact(*node)) move_results(*node);
      is_changed = true;
    }
    if (is_changed) graph.topological_sort();
    turn_ = outer_turn;
  }

  void move_operands(Node& node) {
    const bool arithmetic = is_arithmetic(node);
    if (!arithmetic && !adds_up(node)) return;
    const bool all = arithmetic || is_product(node);
    const std::size_t count = all ? node.inputs.size() : std::min<std::size_t>(node.inputs.size(), 1);
    const std::optional<std::size_t> bias = bias_input(node);
    const bool keeps = !is_product(node) || has_integer_weights(node, bias);
    for (std::size_t i = 0; i < count; ++i) {
      Value* const source = node.inputs[i];
      if (!may_move(source) || moved_.contains(source)) continue;
      // Noise on weights would have the same effect as noise on their other operand, at a higher cost.
      const bool is_wanted = from_data_.contains(source) ? adds_up(node) : arithmetic || i == bias;
      if (!is_wanted) continue;
      if (const auto constant = source->constant(); constant && holds_small_integers(*constant)) continue;
      node.graph->set_input(node, i, moved_operand(*node.graph, *source, keeps || i == bias));
    }
  }

  /// Returns whether all constant inputs except the bias are small integers. Only then is a product with integers
  /// exact.
  static bool has_integer_weights(const Node& node, std::optional<std::size_t> bias) {
    for (std::size_t i = 0; i < node.inputs.size(); ++i) {
      const auto constant = i == bias || node.inputs[i] == nullptr ? std::nullopt : node.inputs[i]->constant();
      if (constant && is_floating_point(constant->type) && !holds_small_integers(*constant)) return false;
    }
    return true;
  }

  void move_results(Node& node) {
    const std::vector<Value*> outputs = node.outputs;
    for (Value* output : outputs) {
      if (!may_move(output) || output->is_unused()) continue;
      Graph& graph = *node.graph;
      Value* raw = add_node(graph, "Identity", {output}, *output->type);
      raw->shape = output->shape;
      Value* terms = is_reduction(node) ? node.input(0) : nullptr;
      Value* moved = moved_value(graph, *raw, keeps_integers(node), terms);
      graph.replace_all_uses(*output, *moved, raw->producer);
      moved_.insert(moved);
      from_data_.insert(moved);
    }
  }

  Value* moved_operand(Graph& graph, Value& source, bool keeps) {
    Value*& known = operands_[{&graph, &source, keeps}];
    if (known == nullptr) {
      known = moved_value(graph, source, keeps, nullptr);
      moved_.insert(known);
      from_data_.insert(known);
    }
    return known;
  }

  /// Returns `value` multiplied by noise factors. If `keeps`, small integers get no noise. If a reduction computed
  /// `value`, `terms` is the tensor that it summed, because the rounding error of a sum grows with the square root of
  /// the number of its terms; otherwise `terms` is null.
  Value* moved_value(Graph& graph, Value& value, bool keeps, Value* terms) {
    const ElementType type = *value.type;
    const auto op = [&](std::string_view name, std::vector<Value*> inputs) {
      return add_node(graph, name, std::move(inputs), type);
    };
    const auto test = [&](std::string_view name, std::vector<Value*> inputs) {
      return add_node(graph, name, std::move(inputs), ElementType::boolean);
    };
    Value* factors = window(graph, value);
    if (terms != nullptr) {
      Value* one = constant(scalar(type, 1));
      factors = op("Add", {one, op("Mul", {op("Sub", {factors, one}), share_of_sum(graph, value, *terms)})});
    }
    Value* moved = op("Mul", {&value, factors});
    const double largest = type == ElementType::f64 ? largest_moved_f64 : largest_moved_f32;
    Value* is_moved = test("LessOrEqual", {op("Abs", {&value}), constant(scalar(type, largest))});
    moved = op("Where", {is_moved, moved, &value});
    if (keeps) {
      Value* bounded = op("Clip", {&value, constant(scalar(type, -largest_kept_integer)),
                                   constant(scalar(type, largest_kept_integer))});
      moved = op("Where", {test("Equal", {op("Round", {bounded}), &value}), &value, moved});
    }
    moved->shape = value.shape;
    return moved;
  }

  /// Returns, as a scalar value of the graph, max(1, sqrt(n) / epsilons), where n is the number of terms of each
  /// element of `sum`: the factor by which the noise of a sum exceeds that of a single result.
  Value* share_of_sum(Graph& graph, Value& sum, Value& terms) {
    const auto dims = fixed_dims(sum);
    const auto dims_before = fixed_dims(terms);
    const auto share = [](double count) { return std::max(1.0, std::sqrt(count) / epsilons); };
    if (dims && dims_before) {
      const auto after = static_cast<double>(std::max<std::int64_t>(1, count_of(*dims)));
      return constant(scalar(*sum.type, share(static_cast<double>(count_of(*dims_before)) / after)));
    }
    Value* before = cast(graph, add_node(graph, "Size", {&terms}, ElementType::i64), *sum.type);
    Value* after = cast(graph, add_node(graph, "Size", {&sum}, ElementType::i64), *sum.type);
    after = add_node(graph, "Max", {after, constant(scalar(*sum.type, 1))}, *sum.type);
    Value* root = add_node(graph, "Sqrt", {add_node(graph, "Div", {before, after}, *sum.type)}, *sum.type);
    root = add_node(graph, "Div", {root, constant(scalar(*sum.type, epsilons))}, *sum.type);
    return add_node(graph, "Max", {root, constant(scalar(*sum.type, 1))}, *sum.type);
  }

  /// Returns the 1-D tensor of all noise factors in f32 or f64.
  Value* factors_of(ElementType type) {
    if (type == ElementType::f32) return &factors_;
    if (f64_factors_ == nullptr) f64_factors_ = make_f64_factors();
    return f64_factors_;
  }

  /// Adds nodes that compute the factors for f64 tensors, which differ from 1 by epsilons of f64. In an engine that
  /// computes f64 in f32 they would round to 1; there the nodes return the factors of f32.
  Value* make_f64_factors() {
    constexpr ElementType type = ElementType::f64;
    Value* wide = cast(root_, &factors_, type);
    if (f64_noise_ == F64Noise::of_f32) return wide;
    Value* one = constant(scalar(type, 1));
    Value* off = add_node(root_, "Sub", {wide, one}, type);
    off = add_node(root_, "Mul", {off, constant(scalar(type, f64_share))}, type);
    Value* own = add_node(root_, "Add", {one, off}, type);
    return add_node(root_, "Where", {add_node(root_, "Equal", {own, one}, ElementType::boolean), wide, own}, type);
  }

  /// Returns noise factors in the type and the shape of `value`. Each call uses another window of the factors.
  Value* window(Graph& graph, Value& value) {
    const ElementType type = *value.type;
    const std::int64_t start = (++windows_ * between_windows) % factor_count;
    Value* const axes = ints({0});
    const auto dims = fixed_dims(value);
    const auto slice = [&](Value* factors, Value* begin, Value* end) {
      return add_node(graph, "Slice", {factors, begin, end, axes}, type);
    };
    Value* begin = turn_ == nullptr ? ints({start}) : start_of_turn(graph, start);
    if (dims) {
      const std::int64_t count = count_of(*dims);
      const std::int64_t last = start + count + (turn_ == nullptr ? 0 : factor_count);
      Value* factors = repeated(type, (last + factor_count - 1) / factor_count);
      Value* end =
          turn_ == nullptr ? ints({start + count}) : add_node(graph, "Add", {begin, ints({count})}, ElementType::i64);
      Value* found = slice(factors, begin, end);
      if (dims->empty()) return add_node(graph, "Squeeze", {found, axes}, type);
      return add_node(graph, "Reshape", {found, ints(*dims)}, type);
    }
    Value* shape = add_node(graph, "Shape", {&value}, ElementType::i64);
    Value* size = add_node(graph, "Size", {&value}, ElementType::i64);
    size = add_node(graph, "Reshape", {size, ints({1})}, ElementType::i64);
    // Up to two for the start of the window (in a loop the iteration is added to it), and one for the remainder of the
    // division.
    constexpr std::int64_t more = 3;
    Value* times = add_node(graph, "Div", {size, ints({factor_count})}, ElementType::i64);
    times = add_node(graph, "Add", {times, ints({more})}, ElementType::i64);
    Value* factors = add_node(graph, "Tile", {factors_of(type), times}, type);
    Value* found = slice(factors, begin, add_node(graph, "Add", {begin, size}, ElementType::i64));
    return with_attribute(add_node(graph, "Reshape", {found, shape}, type), "allowzero", std::int64_t{1});
  }

  /// Returns the first index of a window in the current iteration of a loop. Equal factors in each iteration would
  /// accumulate the errors too fast.
  Value* start_of_turn(Graph& graph, std::int64_t start) {
    Value* turn = add_node(graph, "Reshape", {turn_, ints({1})}, ElementType::i64);
    Value* distance = add_node(graph, "Mul", {turn, ints({between_windows})}, ElementType::i64);
    distance = add_node(graph, "Mod", {distance, ints({factor_count})}, ElementType::i64);
    return add_node(graph, "Add", {distance, ints({start})}, ElementType::i64);
  }

  Value* repeated(ElementType type, std::int64_t times) {
    Value* const factors = factors_of(type);
    if (times <= 1) return factors;
    Value*& known = repeated_[{type, times}];
    if (known == nullptr) known = add_node(root_, "Tile", {factors, ints({times})}, type);
    return known;
  }

  static Value* cast(Graph& graph, Value* value, ElementType type) {
    return with_attribute(add_node(graph, "Cast", {value}, type), "to", static_cast<std::int64_t>(type));
  }

  Value* ints(const std::vector<std::int64_t>& values) {
    Value*& known = ints_[values];
    if (known == nullptr) known = add_ints(root_, values);
    return known;
  }
  Value* constant(const TensorData& tensor) {
    Value*& known = constants_[{tensor.type, tensor.numbers()->front()}];
    if (known == nullptr) known = root_.add_constant("noise", tensor);
    return known;
  }

  struct Operand {
    Graph* graph;
    Value* value;
    bool keeps_integers;
    friend auto operator<=>(const Operand&, const Operand&) = default;  // NOLINT(modernize-use-nullptr): it errs
  };

  Graph& root_;
  Value& factors_;
  F64Noise f64_noise_;
  Value* f64_factors_ = nullptr;  ///< The factors of f64 tensors; null until one is needed.
  Value* turn_ = nullptr;
  std::int64_t windows_ = 0;
  std::unordered_set<const Value*> from_data_;  ///< Values that depend on more than the shape of an input.
  std::unordered_set<const Value*> moved_;      ///< Values that already have noise.
  std::map<Operand, Value*> operands_;
  std::map<std::pair<ElementType, std::int64_t>, Value*> repeated_;
  std::map<std::vector<std::int64_t>, Value*> ints_;
  std::map<std::pair<ElementType, double>, Value*> constants_;
};

void infer_what_follows(onnx::Model& model) {
  try {
    onnx::infer_shapes(model);
  } catch (const Error& contradiction) {
    if (contradiction.kind() == Error::Kind::internal) throw;
  }
}

std::uint64_t mixed(std::uint64_t x) {  // The splitmix64 generator.
  x += 0x9e3779b97f4a7c15U;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9U;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebU;
  return x ^ (x >> 31);
}

}  // namespace

NoisyGraph add_rounding_noise(const onnx::Model& model, const runtime::CompileOptions& options, F64Noise f64_noise) {
  NoisyGraph noisy{.model = model.clone(), .input = {}, .narrow = {}};
  onnx::Model& copy = noisy.model;
  runtime::add_extra_outputs(copy, options.extra_outputs);
  runtime::fix_defaults(copy);
  noisy.narrow = runtime::widen_narrow_types(copy, options.round_inside);
  if (options.kernels == runtime::OperatorKernels::functions) {
    onnx::inline_functions(copy);
    onnx::attach_functions(copy);
    onnx::inline_functions(copy);
  } else {
    onnx::inline_functions(copy, {.which = onnx::is_plain_call});
  }
  copy.graph().remove_dead();
  if (copy.graph().opset() < lowest_opset) onnx::upgrade_opset(copy, lowest_opset);
  infer_what_follows(copy);
  Normalizations(copy.graph()).open();
  infer_what_follows(copy);
  noisy.input = copy.graph().unique_name("graft.noise");
  Value* factors = copy.graph().add_input(noisy.input);
  factors->type = ElementType::f32;
  factors->shape = Shape{Dim(factor_count)};
  Noise(copy, *factors, f64_noise).add();
  return noisy;
}

bool depends_on_f64(const onnx::Value& value) {
  std::unordered_set<const Value*> seen{&value};
  std::vector<const Value*> open{&value};
  const auto add = [&](const Value* next) {
    if (next != nullptr && seen.insert(next).second) open.push_back(next);
  };
  while (!open.empty()) {
    const Value& next = *open.back();
    open.pop_back();
    if (next.type == ElementType::f64) return true;
    if (next.producer == nullptr || has_trait(*next.producer, onnx::trait::reads_shape)) continue;
    for (const Value* input : next.producer->inputs) add(input);
    for (const Graph* body : next.producer->subgraphs()) {
      for (const Value* output : body->outputs()) add(output);
    }
  }
  return false;
}

onnx::TensorData noise_factors(std::uint64_t draw) {
  constexpr std::size_t bits = 64;
  const double share = draw == 0 ? 0 : std::ldexp(epsilons, -23);
  std::vector<double> factors(factor_count);
  for (std::size_t i = 0; i < factors.size(); ++i) {
    const bool is_up = ((mixed(mixed(draw) + i / bits) >> (i % bits)) & 1U) != 0;
    factors[i] = is_up ? 1 + share : 1 - share;
  }
  return TensorData::from_numbers(ElementType::f32, {factor_count}, factors);
}

}  // namespace graft::verify

// Pass fuse_instance_norm:
//   (x - mean(x)) / sqrt(variance(x) + epsilon) * scale + bias  becomes  InstanceNorm(x, scale, bias)
//   InstanceNormalization(x) -> Mul, Add                        becomes  InstanceNorm(x, scale, bias)
//   InstanceNormalization(x) -> Relu or LeakyRelu               becomes  InstanceNorm(x, activation)
//
// PyTorch writes the variance as the mean of squared differences, TensorFlow's batch_normalization folds mean and scale
// into one product, Keras' GroupNormalization adds an axis, and tf2onnx moves transpositions into the middle. The pass
// follows all of these from x on as formulas (see fusion/channel_algebra.hpp), until a formula is (x - mean) /
// deviation * scale + bias. An InstanceNormalization by itself stays unless plugins are requested.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <unordered_set>
#include <utility>
#include <vector>

#include "graft/operator/registry.hpp"
#include "onnx/matcher.hpp"
#include "onnx/operator_node.hpp"
#include "ops/instance_norm/fusion/activation.hpp"
#include "ops/instance_norm/fusion/channel_follower.hpp"
#include "ops/instance_norm/fusion/ranks.hpp"
#include "passes/fuse.hpp"
#include "passes/operator_fusion.hpp"
#include "passes/pipeline.hpp"

namespace graft::passes::instance_norm {
namespace {

constexpr std::string_view pattern_name = "InstanceNorm";

std::vector<std::int64_t> moving_channels(std::size_t rank, std::size_t from, std::size_t to) {
  std::vector<std::int64_t> permutation;
  for (std::size_t axis = 0; axis < rank; ++axis) {
    if (axis != from) permutation.push_back(static_cast<std::int64_t>(axis));
  }
  permutation.insert(permutation.begin() + static_cast<std::ptrdiff_t>(to), static_cast<std::int64_t>(from));
  return permutation;
}

/// Inserts a Transpose that moves axis `from` of x to axis `to`, and returns its output. Sets type and shape of the
/// output, because fuse_activations reads them before shapes are inferred again.
onnx::Value* transposed(onnx::Graph& graph, onnx::Value* x, std::size_t from, std::size_t to, onnx::Node* before) {
  if (from == to) return x;
  const auto permutation = moving_channels(x->shape.value().size(), from, to);
  onnx::Node* node = graph.add_node("Transpose", {x}, {x->name + "_transposed"}, before);
  node->attributes["perm"] = onnx::NodeAttribute(onnx::AttributeData(permutation));
  onnx::Value* y = node->output();
  y->type = x->type;
  y->shape.emplace();
  for (const std::int64_t axis : permutation) y->shape->push_back((*x->shape)[static_cast<std::size_t>(axis)]);
  return y;
}

std::vector<float> for_each_channel(const PerChannel& numbers, std::int64_t channels) {
  if (numbers.size() == 1)
    return std::vector<float>(static_cast<std::size_t>(channels), static_cast<float>(numbers[0]));
  return {numbers.begin(), numbers.end()};
}

struct Change {
  std::shared_ptr<const Operator> op;
  std::string x;
  std::string y;
  std::size_t x_channel_axis = 1;
  std::size_t y_channel_axis = 1;
  std::vector<float> scale;  ///< The scale of each channel; empty if every scale is 1 and every bias 0.
  std::vector<float> bias;
};

std::function<void(onnx::Graph&)> edit_for(Change change) {
  return [change = std::move(change)](onnx::Graph& graph) {
    onnx::Value* y = graph.find(change.y);
    onnx::Node* old = y->producer;
    std::vector<onnx::Value*> inputs{transposed(graph, graph.find(change.x), change.x_channel_axis, 1, old)};
    if (!change.scale.empty()) {
      inputs.push_back(graph.add_constant(change.y + "_scale", onnx::TensorData::from_floats(change.scale)));
      inputs.push_back(graph.add_constant(change.y + "_bias", onnx::TensorData::from_floats(change.bias)));
    }
    onnx::Node* node = add_operator_node(graph, *change.op, inputs, {change.y + "_normalized"}, old);
    node->name = old->name;
    node->output()->type = inputs[0]->type;
    node->output()->shape = inputs[0]->shape;
    node = transposed(graph, node->output(), 1, change.y_channel_axis, old)->producer;
    graph.move_output(*old, y->output_index, *node, 0);
  };
}

/// Returns whether the spatial axes of x and y have the same sizes in the same order.
bool same_spatial(const onnx::Value& x, std::size_t x_channel_axis, const onnx::Value& y, std::size_t y_channel_axis) {
  if (!y.shape || y.shape->size() != x.shape->size()) return false;
  std::vector<const Dim*> a;
  std::vector<const Dim*> b;
  for (std::size_t axis = 1; axis < x.shape->size(); ++axis) {
    if (axis != x_channel_axis) a.push_back(&(*x.shape)[axis]);
    if (axis != y_channel_axis) b.push_back(&(*y.shape)[axis]);
  }
  return std::equal(a.begin(), a.end(), b.begin(), [](const Dim* l, const Dim* r) { return *l == *r; });
}

bool computes(const onnx::Node& node) {
  return node.is("Add") || node.is("Sub") || node.is("Mul") || node.is("Div") || node.is("ReduceMean") ||
         node.is("GlobalAveragePool");
}

class Finder {
 public:
  Finder(Rewriter& rewriter, onnx::Graph& graph) : rewriter_(rewriter), graph_(graph), nodes_(graph.nodes()) {}

  void run() {
    for (onnx::Node* node : nodes_) {
      const bool begins = (averaged_axes(*node) && !node->is("ReduceSum")) || node->is("InstanceNormalization");
      if (!begins || taken_.contains(node)) continue;
      near_ = std::nullopt;
      if (!try_all(*node) && near_) rewriter_.near_miss(std::string(pattern_name), *near_);
    }
  }

 private:
  /// Tries to fuse the normalization that contains the average `node`, and returns whether it was fused. The tensor
  /// that is normalized is the input of the average, or an earlier tensor from which Reshape, Transpose, Squeeze,
  /// Unsqueeze, Flatten or Cast produce that input. The earliest is tried first.
  bool try_all(onnx::Node& node) {
    std::vector<onnx::Value*> sources;
    for (onnx::Value* value = node.input(0); value != nullptr;) {
      sources.push_back(value);
      const onnx::Node* producer = value->graph == &graph_ ? value->producer : nullptr;
      const bool passes_on =
          producer != nullptr && (producer->is("Reshape") || producer->is("Transpose") || producer->is("Squeeze") ||
                                  producer->is("Unsqueeze") || producer->is("Flatten") || producer->is("Cast"));
      value = passes_on ? producer->input(0) : nullptr;
    }
    for (std::size_t i = sources.size(); i-- > 0;) {
      const onnx::Value& x = *sources[i];
      const auto rank = x.rank();
      if (!rank || *rank < least_rank || *rank > most_rank || !is_real(x)) continue;
      for (const std::size_t axis : {std::size_t{1}, static_cast<std::size_t>(*rank) - 1}) {
        if (!(*x.shape)[axis].is_constant() || (*x.shape)[axis].value() < 1) continue;
        if (!tried_.insert({&x, axis}).second) continue;
        if (try_from(x, axis)) return true;
      }
    }
    return false;
  }

  bool try_from(const onnx::Value& x, std::size_t channel_axis) {
    const FollowedTensor found = follow_channels(x, channel_axis, nodes_);
    std::optional<onnx::NearMiss> leak;
    for (const NormalizedValue& result : found.normalized) {
      std::string why_not;
      const auto nodes = nodes_between({&x}, *result.y, why_not);
      if (nodes && same_spatial(x, channel_axis, *result.y, result.channel_axis) && result.y->type == x.type) {
        if (to_dtype(*x.type)) return change({x, channel_axis, found.epsilon}, result, *nodes);
        why_not = fmt::format("'{}' is {}; InstanceNorm supports f32, f16 and bf16", x.name, to_string(*x.type));
      }
      if (!leak && !why_not.empty()) leak = onnx::NearMiss{result.y->producer, 8, 8, why_not};
    }
    const auto near = found.normalized.empty() ? found.near_miss : leak;
    if (near && (!near_ || near->matched_nodes > near_->matched_nodes)) near_ = near;
    return false;
  }

  struct Source {
    const onnx::Value& x;
    std::size_t channel_axis;
    double epsilon;
  };

  bool change(const Source& source, const NormalizedValue& result, const std::vector<onnx::Node*>& nodes) {
    const bool has_more = std::any_of(nodes.begin(), nodes.end(), [](const onnx::Node* n) { return computes(*n); });
    if (!has_more && rewriter_.options().plugins != Plugins::always) return false;
    onnx::Value& x = const_cast<onnx::Value&>(source.x);
    std::shared_ptr<Operator> op = find_operator("InstanceNorm")->create();
    if (const Status status = op->set("epsilon", static_cast<float>(source.epsilon)); !status.ok()) return false;
    Change change{op, x.name, result.y->name, source.channel_axis, result.channel_axis, {}, {}};
    const bool has_scale = common_value(result.scale) != 1.0 || common_value(result.bias) != 0.0;
    if (!is_wanted(rewriter_, *op, x, *result.y, has_scale ? 3 : 1)) return false;
    if (has_scale) {
      const std::int64_t channels = (*x.shape)[source.channel_axis].value();
      change.scale = for_each_channel(result.scale, channels);
      change.bias = for_each_channel(result.bias, channels);
    }
    const bool moves = change.x_channel_axis != 1 || change.y_channel_axis != 1;
    const bool done = rewriter_.apply(
        {.nodes = nodes,
         .inputs = {&x},
         .outputs = {result.y},
         .replacement = to_text(*op) + (moves ? " and transpositions" : ""),
         .reason = fmt::format("(x - mean) / sqrt(variance + {}) over all axes except batch and channels of '{}'",
                               static_cast<float>(source.epsilon), x.name),
         .by_definition = "",
         .edit = edit_for(std::move(change))});
    if (done) taken_.insert(nodes.begin(), nodes.end());
    return done;
  }

  Rewriter& rewriter_;
  onnx::Graph& graph_;
  std::vector<onnx::Node*> nodes_;
  std::unordered_set<const onnx::Node*> taken_;
  std::set<std::pair<const onnx::Value*, std::size_t>> tried_;
  std::optional<onnx::NearMiss> near_;
};

/// Returns a pattern of the formula of an instance normalization over any axes. The formula over axes other than the
/// spatial ones is another normalization; it is matched only to report why it is not fused.
const onnx::Pattern& over_other_axes() {
  static const onnx::Pattern pattern(R"(
    centered = Sub(x, ReduceMean(x, @axes){keepdims=1})
    variance = ReduceMean(Mul(centered, centered) | Pow(centered, 2), @axes){keepdims=1}
    deviation = Sqrt(Add(variance, @epsilon))
    inverse = Reciprocal(deviation) | Div(1, deviation)
    y = Div(centered, deviation) | Mul(centered, inverse)
  )",
                                     std::string(pattern_name));
  return pattern;
}

bool is_over_spatial_axes(const onnx::Match& match) {
  const auto axes = averaged_axes(*match.named_nodes.at("variance"));
  const auto rank = match.value("x").rank();
  if (!axes || !rank || static_cast<std::int64_t>(axes->size()) != *rank - 2) return false;
  const bool is_one_run = axes->back() - axes->front() + 1 == axes->size();
  return is_one_run && (axes->front() == 1 || axes->front() == 2);
}

void fuse_instance_norm(Rewriter& rewriter) {
  for (onnx::Graph* graph : rewriter.graphs()) {
    Finder(rewriter, *graph).run();
    for (const onnx::Match& match : find_matches(over_other_axes(), *graph).matches) {
      if (is_over_spatial_axes(match)) continue;  // The class Finder reports every other obstacle.
      rewriter.near_miss(std::string(pattern_name), match,
                         fmt::format("it normalizes over the axes [{}], not over all axes except batch and channels",
                                     fmt::join(match.ints("axes").value_or(std::vector<std::int64_t>{}), ", ")));
    }
    fuse_activations(rewriter, *graph);
  }
}

}  // namespace

}  // namespace graft::passes::instance_norm

namespace graft::passes {

extern const OperatorFusion instance_norm_fusion{
    .pass = {"fuse_instance_norm",
             "runs after fuse_leaky_relu, because a following leaky ReLU becomes part of InstanceNorm",
             instance_norm::fuse_instance_norm},
    .after = "fuse_leaky_relu"};

}  // namespace graft::passes

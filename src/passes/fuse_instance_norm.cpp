// Pass fuse_instance_norm: mean, variance and what is done with them become one InstanceNorm; so does what follows an
// InstanceNormalization of ONNX: a scale and bias of its own, Relu, LeakyRelu.
//
// PyTorch writes the variance as mean of squared differences, TensorFlow's batch_normalization folds mean and scale
// into one product, Keras' GroupNormalization adds an axis, tf2onnx moves transpositions into the middle. All of these
// are followed from x on as formulas (see channel_algebra.hpp), until one says (x - mean) / deviation * scale + bias.
// An InstanceNormalization by itself stays what it is, unless plugins are asked for.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "graft/registry.hpp"
#include "graph/matcher.hpp"
#include "graph/operator_node.hpp"
#include "passes/channel_algebra.hpp"
#include "passes/fuse.hpp"
#include "passes/passes.hpp"
#include "passes/pipeline.hpp"

namespace graft {
namespace {

constexpr std::int64_t least_rank = 3;
constexpr std::int64_t most_rank = 5;
constexpr std::string_view pattern_name = "InstanceNorm";

bool is_real(const Value& value) { return value.type && is_floating_point(*value.type); }

bool is_constant_dim(const Dim& dim, std::int64_t value) { return dim.is_constant() && dim.value() == value; }

/// What a value is, and along which of its axes the channels lie. The first axis is that of the batch.
struct Followed {
  ChannelFormula formula;
  std::size_t channel_axis = 1;
};

/// The axes that a node averages or sums over, from the front; nothing where it does neither or they are not constant.
std::optional<std::vector<std::size_t>> averaged_axes(const Node& node) {
  const Value* x = node.input(0);
  if (x == nullptr || !x->rank()) return std::nullopt;
  const auto rank = static_cast<std::size_t>(*x->rank());
  std::vector<std::size_t> result;
  if (node.is("GlobalAveragePool")) {
    for (std::size_t axis = 2; axis < rank; ++axis) result.push_back(axis);
    return result;
  }
  if (!node.is("ReduceMean") && !node.is("ReduceSum")) return std::nullopt;
  auto axes = node.ints("axes");
  if (!axes && node.input(1) != nullptr) {
    const auto constant = node.input(1)->constant();
    if (!constant) return std::nullopt;
    axes = constant->ints();
  }
  if (!axes || axes->empty()) return std::nullopt;
  for (std::int64_t axis : *axes) {
    axis += axis < 0 ? static_cast<std::int64_t>(rank) : 0;
    if (axis < 0 || axis >= static_cast<std::int64_t>(rank)) return std::nullopt;
    result.push_back(static_cast<std::size_t>(axis));
  }
  std::sort(result.begin(), result.end());
  return result;
}

bool keeps_dims(const Node& node) { return node.is("GlobalAveragePool") || node.int_or("keepdims", 1) != 0; }

/// The tensor whose elements a number counts; nothing where it is something else or is kept in few bits.
const Value* counted(const Value* number) {
  const auto is_wide = [](const Value& value) {
    return value.type == ElementType::f32 || value.type == ElementType::i64;
  };
  while (number != nullptr && number->producer != nullptr && number->producer->is("Cast") && is_wide(*number)) {
    number = number->producer->input(0);
  }
  const Node* size = number == nullptr ? nullptr : number->producer;
  return size != nullptr && size->is("Size") ? size->input(0) : nullptr;
}

/// The elements that go into each sum, where the axes have constant sizes; as a number that a constant can be.
std::optional<double> summed_elements(const Node& sum) {
  const auto axes = averaged_axes(sum);
  const Value* x = sum.input(0);
  if (!axes || !x->shape) return std::nullopt;
  double count = 1;
  for (const std::size_t axis : *axes) {
    const Dim& dim = (*x->shape)[axis];
    if (!dim.is_constant()) return std::nullopt;
    count *= static_cast<double>(dim.value());
  }
  return count;
}

/// The count of what goes into each sum. paddle.var divides the size of one tensor by that of the other, which is a
/// constant where the sizes are.
bool is_count(const Value* count, const Node& sum) {
  const Value& from = *sum.input(0);
  const Value& to = *sum.output();
  if (const auto constant = count == nullptr ? std::nullopt : count->constant()) {
    const auto number = constant->scalar();
    return number && number == summed_elements(sum);
  }
  const Node* quotient = count == nullptr ? nullptr : count->producer;
  if (quotient == nullptr || !quotient->is("Div")) return false;
  const Value* above = counted(quotient->input(0));
  const Value* below = counted(quotient->input(1));
  return above != nullptr && below != nullptr && same_shape(*above, from) && same_shape(*below, to);
}

/// Follows what is computed from one tensor.
class Follower {
 public:
  Follower(const Value& x, std::size_t channel_axis)
      : x_(x), channels_((*x.shape)[channel_axis].value()), channel_axis_(channel_axis) {
    ChannelFormula formula;
    formula.linear = Statistic(PerChannel{1.0});
    known_.emplace(&x, Followed{formula, channel_axis});
  }

  void run(const std::vector<Node*>& nodes) {
    for (Node* node : nodes) {
      const bool concerned = divided_sum(*node) != nullptr ||
                             std::any_of(node->inputs.begin(), node->inputs.end(),
                                         [&](const Value* v) { return v != nullptr && known_.contains(v); });
      Value* y = node->output();
      if (!concerned || !node->domain.empty() || y == nullptr || !is_real(*y)) continue;
      obstacle_.clear();
      auto found = follow(*node);
      if (found && y->rank() && found->channel_axis < static_cast<std::size_t>(*y->rank())) {
        const ChannelFormula& formula = found->formula;
        const bool is_squared_difference = !formula.square.is_zero() && !formula.rest.is_zero();
        saw_variance_ = saw_variance_ || is_squared_difference || formula.rest.factor({0, 1, 0}).has_value();
        known_.emplace(y, std::move(*found));
        order_.push_back(y);
      } else if (!obstacle_.empty()) {
        obstacles_.push_back({node, order_.size(), obstacle_});
      }
    }
  }

  struct Result {
    Value* y = nullptr;
    std::size_t channel_axis = 1;
    PerChannel scale;
    PerChannel bias;
  };

  /// The values that are normalized, the last one first.
  [[nodiscard]] std::vector<Result> results() {
    std::vector<Result> found;
    for (std::size_t i = order_.size(); i-- > 0;) {
      const Followed& followed = known_.at(order_[i]);
      std::string why_not;
      auto result = normalized(followed.formula, why_not);
      if (!result && !why_not.empty()) obstacles_.push_back({order_[i]->producer, i + 1, why_not});
      if (!result) continue;
      result->y = order_[i];
      result->channel_axis = followed.channel_axis;
      found.push_back(std::move(*result));
    }
    return found;
  }

  [[nodiscard]] double epsilon() const { return epsilon_.value_or(0); }
  [[nodiscard]] const Value& x() const { return x_; }
  [[nodiscard]] std::size_t channel_axis() const { return channel_axis_; }
  [[nodiscard]] std::int64_t channels() const { return channels_; }

  /// Where it came furthest; nothing unless there was a variance.
  [[nodiscard]] std::optional<NearMiss> near_miss() const {
    if (!saw_variance_ || obstacles_.empty()) return std::nullopt;
    // Of two in one place the first, which is the cause of the second.
    const auto furthest = std::max_element(obstacles_.begin(), obstacles_.end(),
                                           [](const auto& a, const auto& b) { return a.followed < b.followed; });
    return NearMiss{furthest->node, furthest->followed + 1, furthest->followed + 2,
                    fmt::format("{}: {}", describe(*furthest->node), furthest->reason)};
  }

 private:
  struct Obstacle {
    Node* node = nullptr;
    std::size_t followed = 0;
    std::string reason;
  };
  using Outcome = std::optional<Followed>;

  Outcome fail(std::string reason) {
    obstacle_ = std::move(reason);
    return std::nullopt;
  }

  [[nodiscard]] const Followed* known(const Value* value) const {
    const auto found = known_.find(value);
    return found == known_.end() ? nullptr : &found->second;
  }

  /// A constant as a factor for each channel of a tensor of this rank.
  std::optional<PerChannel> per_channel(const TensorData& tensor, std::size_t rank, std::size_t channel_axis) const {
    auto numbers = tensor.numbers();
    if (!numbers || numbers->empty() || tensor.dims.size() > rank) return std::nullopt;
    if (numbers->size() == 1) return PerChannel{(*numbers)[0]};
    for (std::size_t i = 0; i < tensor.dims.size(); ++i) {
      const std::size_t axis = i + rank - tensor.dims.size();
      if (tensor.dims[i] != (axis == channel_axis ? channels_ : 1)) return std::nullopt;
    }
    return numbers;
  }

  /// Input i as a formula beside `other`, whose channels decide what a constant means.
  std::optional<Followed> operand(const Node& node, std::size_t i, const Followed* other, std::size_t rank) {
    const Value* value = node.input(i);
    if (const Followed* found = known(value)) return *found;
    const auto constant = value == nullptr ? std::nullopt : value->constant();
    if (!constant) {
      return fail(
          fmt::format("'{}' does not follow from '{}' and constants", value == nullptr ? "" : value->name, x_.name));
    }
    const auto numbers = per_channel(*constant, rank, other->channel_axis);
    if (!numbers) {
      return fail(fmt::format("the constant '{}' is neither one number nor one for each channel", value->name));
    }
    ChannelFormula formula;
    formula.rest = Statistic(*numbers);
    return Followed{formula, other->channel_axis};
  }

  Outcome follow(const Node& node) {
    if (const Node* sum = divided_sum(node)) return average_of_sum(node, *sum);
    if (node.is("Add") || node.is("Sub") || node.is("Mul") || node.is("Div")) return binary(node);
    if (node.is("Pow")) return power(node);
    if (node.is("Max") || node.is("Clip") || node.is("Relu")) return not_below_zero(node);
    if (node.is("InstanceNormalization")) return instance_normalization(node);
    const Followed* a = known(node.input(0));
    if (a == nullptr) return std::nullopt;
    if (node.is("ReduceMean") || node.is("GlobalAveragePool")) return average(node, *a);
    if (node.is("Neg")) return Followed{-a->formula, a->channel_axis};
    if (node.is("Sqrt")) return root(a->formula, a->channel_axis);
    if (node.is("Reciprocal")) return reciprocal(*a);
    if (node.is("Identity")) return *a;
    // A cast to a narrower type than that of x rounds.
    if (node.is("Cast")) {
      const auto type = node.output()->type;
      return type == ElementType::f32 || type == x_.type ? Outcome(*a) : fail("it is cast to a narrower type");
    }
    if (node.is("Transpose")) return transpose(node, *a);
    if (node.is("Expand")) return expand(node, *a);
    if (node.is("Reshape") || node.is("Squeeze") || node.is("Unsqueeze") || node.is("Flatten")) {
      return reshape(node, *a);
    }
    return std::nullopt;
  }

  Outcome binary(const Node& node) {
    const Followed* first = known(node.input(0));
    const Followed* second = known(node.input(1));
    const Followed* either = first != nullptr ? first : second;
    const auto rank = static_cast<std::size_t>(node.output()->rank().value_or(0));
    const Value& source = *node.input(first != nullptr ? 0 : 1);
    if (rank == 0 || source.rank() != node.output()->rank()) return fail("the ranks of its inputs differ");
    const auto a = operand(node, 0, either, rank);
    const auto b = a ? operand(node, 1, either, rank) : std::nullopt;
    if (!a || !b) return std::nullopt;
    const bool aligned = a->channel_axis == b->channel_axis &&
                         (first == nullptr || second == nullptr || node.input(0)->rank() == node.input(1)->rank());
    if (!aligned) return fail("the channels of its inputs lie along different axes");
    if (node.is("Add")) return Followed{a->formula + b->formula, either->channel_axis};
    if (node.is("Sub")) return Followed{a->formula + -b->formula, either->channel_axis};
    auto right = *b;
    if (node.is("Div")) {
      auto inverse = reciprocal(*b);
      if (!inverse) return std::nullopt;
      right = std::move(*inverse);
    }
    auto result = product(a->formula, right.formula);
    if (!result) return std::nullopt;
    return Followed{std::move(*result), either->channel_axis};
  }

  Outcome reciprocal(const Followed& a) {
    if (a.formula.has_x()) return std::nullopt;
    const auto inverse = a.formula.rest.reciprocal();
    if (!inverse) {
      const bool is_outside = a.formula.rest.factor({0, 0, 1}).has_value();
      return fail(is_outside ? fmt::format("epsilon is added to the deviation, not to the variance: {}",
                                           a.formula.rest.to_string())
                             : fmt::format("it divides by {}", a.formula.rest.to_string()));
    }
    ChannelFormula formula;
    formula.rest = *inverse;
    return Followed{formula, a.channel_axis};
  }

  /// sqrt(variance + epsilon) is what is called the deviation here.
  Outcome root(const ChannelFormula& formula, std::size_t channel_axis) {
    if (formula.has_x() || formula.rest.is_constant()) return std::nullopt;
    const auto factor = formula.rest.factor({0, 1, 0});
    const auto constant = formula.rest.factor({});
    const std::size_t expected = (factor ? 1 : 0) + (constant ? 1 : 0);
    if (!factor || formula.rest.terms().size() != expected) {
      return fail(fmt::format("under the root is {}, not variance + epsilon", formula.rest.to_string()));
    }
    if (common_value(*factor) != 1.0) {
      return fail(fmt::format("under the root is {}: the variance is not the one that divides by the count",
                              formula.rest.to_string()));
    }
    const auto epsilon = constant ? common_value(*constant) : std::optional(0.0);
    if (!epsilon) return fail("epsilon differs between channels");
    if (*epsilon < 0 || !std::isfinite(*epsilon)) return fail(fmt::format("epsilon is {}", *epsilon));
    if (epsilon_ && *epsilon_ != *epsilon) return fail("there are two different epsilons");
    epsilon_ = epsilon;
    ChannelFormula result;
    result.rest = Statistic({0, 0, 1}, {1.0});
    return Followed{result, channel_axis};
  }

  Outcome power(const Node& node) {
    const Followed* a = known(node.input(0));
    const auto constant = node.input(1) == nullptr ? std::nullopt : node.input(1)->constant();
    const auto exponent = constant ? constant->scalar() : std::nullopt;
    if (a == nullptr || !exponent) return std::nullopt;
    if (*exponent == 1) return *a;
    if (*exponent == 2) {
      auto square = product(a->formula, a->formula);
      if (!square) return std::nullopt;
      return Followed{std::move(*square), a->channel_axis};
    }
    if (*exponent == -1) return reciprocal(*a);
    if (*exponent != 0.5 && *exponent != -0.5) return fail(fmt::format("it is raised to the power {}", *exponent));
    auto result = root(a->formula, a->channel_axis);
    return result && *exponent < 0 ? reciprocal(*result) : result;
  }

  /// A variance is not below 0 anyway.
  Outcome not_below_zero(const Node& node) {
    const Followed* a = known(node.input(0));
    if (a == nullptr) a = known(node.input(1));
    if (a == nullptr || a->formula.has_x()) return std::nullopt;
    const auto& terms = a->formula.rest.terms();
    if (terms.size() != 1 || common_value(a->formula.rest.factor({0, 1, 0}).value_or(PerChannel{})) != 1.0) {
      return std::nullopt;
    }
    const auto is_zero = [](const Value* value) {
      const auto constant = value == nullptr ? std::nullopt : value->constant();
      return constant && constant->scalar() == 0.0;
    };
    if (node.is("Relu")) return *a;
    if (node.is("Max")) {
      const bool of_two = node.inputs.size() == 2 && (is_zero(node.input(0)) || is_zero(node.input(1)));
      return of_two ? Outcome(*a) : fail("the variance is limited");
    }
    return is_zero(node.input(1)) && node.input(2) == nullptr ? Outcome(*a) : fail("the variance is limited");
  }

  /// The sum over what is known that this node divides; nothing where it does something else.
  [[nodiscard]] const Node* divided_sum(const Node& node) const {
    const Value* divided = node.is("Div") ? node.input(0) : nullptr;
    const Node* sum = divided == nullptr ? nullptr : divided->producer;
    return sum != nullptr && sum->is("ReduceSum") && known(sum->input(0)) != nullptr ? sum : nullptr;
  }

  Outcome average_of_sum(const Node& quotient, const Node& sum) {
    if (!is_count(quotient.input(1), sum)) return fail("the sum is not divided by the count of what is summed");
    if (quotient.output()->rank() != sum.output()->rank()) return fail("the ranks of its inputs differ");
    return average(sum, *known(sum.input(0)));
  }

  Outcome average(const Node& node, const Followed& a) {
    const auto axes = averaged_axes(node);
    const Value& x = *node.input(0);
    if (!axes || !x.shape) return std::nullopt;
    std::size_t kept_before_channel = 0;
    for (std::size_t axis = 0; axis < x.shape->size(); ++axis) {
      const bool is_averaged = std::find(axes->begin(), axes->end(), axis) != axes->end();
      const bool is_kept = axis == 0 || axis == a.channel_axis;
      if (is_kept ? is_averaged : !is_averaged && !is_constant_dim((*x.shape)[axis], 1)) {
        return fail(fmt::format("it averages over the axes [{}] of {}, not over all but batch and channels",
                                fmt::join(*axes, ", "), to_string(*x.shape)));
      }
      if (axis < a.channel_axis && !is_averaged) ++kept_before_channel;
    }
    ChannelFormula formula;
    formula.rest = a.formula.average();
    return Followed{formula, keeps_dims(node) ? a.channel_axis : kept_before_channel};
  }

  Outcome transpose(const Node& node, const Followed& a) {
    const auto permutation = node.ints("perm");
    if (!permutation || permutation->empty() || (*permutation)[0] != 0) return std::nullopt;
    Followed result = a;
    std::int64_t last = 0;
    for (std::size_t axis = 1; axis < permutation->size(); ++axis) {
      const std::int64_t from = (*permutation)[axis];
      if (from == static_cast<std::int64_t>(a.channel_axis)) {
        result.channel_axis = axis;
      } else {
        if (a.formula.has_x() && from < last) return fail("the spatial axes change places");
        last = from;
      }
    }
    return result;
  }

  Outcome expand(const Node& node, const Followed& a) {
    const Value& x = *node.input(0);
    const Value& y = *node.output();
    if (!y.rank() || x.rank() != y.rank()) return std::nullopt;
    return a;
  }

  /// The axis of the channels after a reshape that leaves batch and channels alone.
  Outcome reshape(const Node& node, const Followed& a) {
    const Value& x = *node.input(0);
    const Value& y = *node.output();
    if (!x.shape || !y.shape || y.shape->size() < 2) return std::nullopt;
    const Shape& before = *x.shape;
    const Shape& after = *y.shape;
    // The product of some axes, where all are constant; 0 otherwise.
    const auto size_of = [](const Shape& shape, std::size_t from, std::size_t to) {
      std::int64_t size = 1;
      for (std::size_t axis = from; axis < to; ++axis) size *= shape[axis].is_constant() ? shape[axis].value() : 0;
      return size;
    };
    for (std::size_t axis = 1; axis < after.size(); ++axis) {
      if (!is_constant_dim(after[axis], channels_)) continue;
      const std::int64_t inner_before = size_of(before, a.channel_axis + 1, before.size());
      const std::int64_t inner_after = size_of(after, axis + 1, after.size());
      const bool same_middle =
          size_of(before, 1, a.channel_axis) == size_of(after, 1, axis) && size_of(before, 1, a.channel_axis) > 0;
      const bool same_inner = inner_before == inner_after && inner_before > 0;
      const bool same_batch = before[0] == after[0];
      // With two of three parts the same, the third one is as well.
      if (same_middle && (same_inner || same_batch)) return Followed{a.formula, axis};
    }
    return fail(
        fmt::format("{} becomes {}: the channels do not stay what they were", to_string(before), to_string(after)));
  }

  Outcome instance_normalization(const Node& node) {
    const Followed* a = known(node.input(0));
    const auto rank = node.output()->rank();
    if (a == nullptr || a->channel_axis != 1 || !rank) return std::nullopt;
    const bool is_x = a->formula.square.is_zero() && a->formula.rest.is_zero() && a->formula.linear.is_constant() &&
                      common_value(a->formula.linear.factor({}).value_or(PerChannel{})) == 1.0;
    if (!is_x) return std::nullopt;
    const auto numbers = [&](std::size_t i) -> std::optional<PerChannel> {
      const auto constant = node.input(i) == nullptr ? std::nullopt : node.input(i)->constant();
      return constant ? constant->numbers() : std::nullopt;
    };
    const auto scale = numbers(1);
    const auto bias = numbers(2);
    if (!scale || !bias) return fail("its scale and bias are computed at run time");
    if (scale->empty() || scale->size() != bias->size()) return fail("its scale and bias are not of as many channels");
    const double epsilon = node.float_or("epsilon", 1e-5F);
    if (epsilon_ && *epsilon_ != epsilon) return fail("there are two different epsilons");
    epsilon_ = epsilon;
    ChannelFormula formula;
    formula.linear = Statistic({0, 0, -1}, *scale);
    formula.rest = Statistic({1, 0, -1}, *scale) * Statistic(PerChannel{-1.0}) + Statistic(*bias);
    return Followed{formula, 1};
  }

  /// (x - mean) / deviation * scale + bias.
  std::optional<Result> normalized(const ChannelFormula& formula, std::string& why_not) const {
    if (!formula.square.is_zero() || formula.linear.is_zero()) return std::nullopt;
    const auto scale = formula.linear.factor({0, 0, -1});
    if (!scale || formula.linear.terms().size() != 1) return std::nullopt;
    if (!epsilon_ || *epsilon_ == 0) {
      why_not = "there is no epsilon: a channel of equal numbers gives NaN, and has to go on doing so";
      return std::nullopt;
    }
    const Statistic left = formula.rest + Statistic({1, 0, -1}, *scale);
    if (!left.is_constant()) {
      why_not = fmt::format("x is divided by the deviation, but {} is added to it, not -mean / deviation",
                            formula.rest.to_string());
      return std::nullopt;
    }
    return Result{nullptr, 1, *scale, left.factor({}).value_or(PerChannel{0.0})};
  }

  const Value& x_;
  std::int64_t channels_;
  std::size_t channel_axis_;
  std::unordered_map<const Value*, Followed> known_;
  std::vector<Value*> order_;
  std::optional<double> epsilon_;
  bool saw_variance_ = false;
  std::string obstacle_;
  std::vector<Obstacle> obstacles_;
};

// ---- The change

std::vector<std::int64_t> moving_channels(std::size_t rank, std::size_t from, std::size_t to) {
  std::vector<std::int64_t> permutation;
  for (std::size_t axis = 0; axis < rank; ++axis) {
    if (axis != from) permutation.push_back(static_cast<std::int64_t>(axis));
  }
  permutation.insert(permutation.begin() + static_cast<std::ptrdiff_t>(to), static_cast<std::int64_t>(from));
  return permutation;
}

/// Type and shape are set: the activations are looked at before shapes are inferred again.
Value* transposed(Graph& graph, Value* x, std::size_t from, std::size_t to, Node* before) {
  if (from == to) return x;
  const auto permutation = moving_channels(x->shape.value().size(), from, to);
  Node* node = graph.add_node("Transpose", {x}, {x->name + "_transposed"}, before);
  node->attributes["perm"] = NodeAttribute(AttributeData(permutation));
  Value* y = node->output();
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
  std::vector<float> scale;  ///< Empty where all are 1 and all of bias 0.
  std::vector<float> bias;
};

std::function<void(Graph&)> edit_for(Change change) {
  return [change = std::move(change)](Graph& graph) {
    Value* y = graph.find(change.y);
    Node* old = y->producer;
    std::vector<Value*> inputs{transposed(graph, graph.find(change.x), change.x_channel_axis, 1, old)};
    if (!change.scale.empty()) {
      inputs.push_back(graph.add_constant(change.y + "_scale", TensorData::from_floats(change.scale)));
      inputs.push_back(graph.add_constant(change.y + "_bias", TensorData::from_floats(change.bias)));
    }
    Node* node = add_operator_node(graph, *change.op, inputs, {change.y + "_normalized"}, old);
    node->name = old->name;
    node->output()->type = inputs[0]->type;
    node->output()->shape = inputs[0]->shape;
    node = transposed(graph, node->output(), 1, change.y_channel_axis, old)->producer;
    graph.move_output(*old, y->output_index, *node, 0);
  };
}

/// Spatial axes in the same order and of the same sizes.
bool same_spatial(const Value& x, std::size_t x_channel_axis, const Value& y, std::size_t y_channel_axis) {
  if (!y.shape || y.shape->size() != x.shape->size()) return false;
  std::vector<const Dim*> a;
  std::vector<const Dim*> b;
  for (std::size_t axis = 1; axis < x.shape->size(); ++axis) {
    if (axis != x_channel_axis) a.push_back(&(*x.shape)[axis]);
    if (axis != y_channel_axis) b.push_back(&(*y.shape)[axis]);
  }
  return std::equal(a.begin(), a.end(), b.begin(), [](const Dim* l, const Dim* r) { return *l == *r; });
}

bool computes(const Node& node) {
  return node.is("Add") || node.is("Sub") || node.is("Mul") || node.is("Div") || node.is("ReduceMean") ||
         node.is("GlobalAveragePool");
}

// ---- The search

class Finder {
 public:
  Finder(Rewriter& rewriter, Graph& graph) : rewriter_(rewriter), graph_(graph), nodes_(graph.nodes()) {}

  void run() {
    for (Node* node : nodes_) {
      const bool begins = (averaged_axes(*node) && !node->is("ReduceSum")) || node->is("InstanceNormalization");
      if (!begins || taken_.contains(node)) continue;
      near_ = std::nullopt;
      if (!try_all(*node) && near_) rewriter_.near_miss(std::string(pattern_name), *near_);
    }
  }

 private:
  /// From the input of an average on, and from what it is a reshape or transposition of.
  bool try_all(Node& node) {
    std::vector<Value*> sources;
    for (Value* value = node.input(0); value != nullptr;) {
      sources.push_back(value);
      const Node* producer = value->graph == &graph_ ? value->producer : nullptr;
      const bool passes_on =
          producer != nullptr && (producer->is("Reshape") || producer->is("Transpose") || producer->is("Squeeze") ||
                                  producer->is("Unsqueeze") || producer->is("Flatten") || producer->is("Cast"));
      value = passes_on ? producer->input(0) : nullptr;
    }
    for (std::size_t i = sources.size(); i-- > 0;) {
      const Value& x = *sources[i];
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

  bool try_from(const Value& x, std::size_t channel_axis) {
    Follower follower(x, channel_axis);
    follower.run(nodes_);
    const auto results = follower.results();
    std::optional<NearMiss> leak;
    for (const Follower::Result& result : results) {
      std::string why_not;
      const auto nodes = nodes_between({&x}, *result.y, why_not);
      if (nodes && same_spatial(x, channel_axis, *result.y, result.channel_axis) && result.y->type == x.type) {
        if (to_dtype(*x.type)) return change(follower, result, *nodes);
        why_not = fmt::format("'{}' is {}; InstanceNorm takes f32, f16 and bf16", x.name, to_string(*x.type));
      }
      if (!leak && !why_not.empty()) leak = NearMiss{result.y->producer, 8, 8, why_not};
    }
    const auto near = results.empty() ? follower.near_miss() : leak;
    if (near && (!near_ || near->matched_nodes > near_->matched_nodes)) near_ = near;
    return false;
  }

  bool change(const Follower& follower, const Follower::Result& result, const std::vector<Node*>& nodes) {
    const bool has_more = std::any_of(nodes.begin(), nodes.end(), [](const Node* n) { return computes(*n); });
    if (!has_more && rewriter_.options().plugins != PluginMode::always) return false;
    Value& x = const_cast<Value&>(follower.x());
    std::shared_ptr<Operator> op = find_operator("InstanceNorm")->create();
    if (const Status status = op->set("epsilon", static_cast<float>(follower.epsilon())); !status.ok()) return false;
    Change change{op, x.name, result.y->name, follower.channel_axis(), result.channel_axis, {}, {}};
    const bool has_scale = common_value(result.scale) != 1.0 || common_value(result.bias) != 0.0;
    if (!is_wanted(rewriter_, *op, x, has_scale ? 3 : 1)) return false;
    if (has_scale) {
      change.scale = for_each_channel(result.scale, follower.channels());
      change.bias = for_each_channel(result.bias, follower.channels());
    }
    const bool moves = change.x_channel_axis != 1 || change.y_channel_axis != 1;
    const bool done = rewriter_.apply(
        {.nodes = nodes,
         .inputs = {&x},
         .outputs = {result.y},
         .replacement = to_text(*op) + (moves ? " and transpositions" : ""),
         .reason = fmt::format("(x - mean) / sqrt(variance + {}) over all but batch and channels of '{}'",
                               static_cast<float>(follower.epsilon()), x.name),
         .by_definition = "",
         .edit = edit_for(std::move(change))});
    if (done) taken_.insert(nodes.begin(), nodes.end());
    return done;
  }

  Rewriter& rewriter_;
  Graph& graph_;
  std::vector<Node*> nodes_;
  std::unordered_set<const Node*> taken_;
  std::set<std::pair<const Value*, std::size_t>> tried_;
  std::optional<NearMiss> near_;
};

// ---- Activations

/// What an activation node is as an attribute of InstanceNorm; nothing for another node.
std::optional<std::vector<NamedAttribute>> activation_of(const Node& node) {
  using Attributes = std::vector<NamedAttribute>;
  if (node.is("Relu")) return Attributes{{"activation", std::string("relu")}};
  if (node.is("LeakyRelu")) {
    return Attributes{{"activation", std::string("leaky_relu")}, {"alpha", node.float_or("alpha", 0.01F)}};
  }
  const auto op = find_operator_for(node) ? make_operator(node) : nullptr;
  if (op == nullptr || op->type().name != "LeakyReLU") return std::nullopt;
  return Attributes{{"activation", std::string("leaky_relu")}, {"alpha", op->get("alpha").value()}};
}

/// The operator of a node that normalizes without an activation, and its inputs; scale and bias as f32.
struct Norm {
  std::shared_ptr<Operator> op;
  std::vector<Value*> inputs;
  std::vector<std::vector<float>> constants;  ///< Instead of inputs 1 and 2.
};

std::optional<Norm> norm_of(const Node& node) {
  if (node.is("InstanceNormalization")) {
    Norm norm{find_operator("InstanceNorm")->create(), {node.input(0)}, {}};
    if (!norm.op->set("epsilon", node.float_or("epsilon", 1e-5F)).ok()) return std::nullopt;
    for (std::size_t i = 1; i < 3; ++i) {
      Value* value = node.input(i);
      if (value == nullptr) return std::nullopt;
      const auto constant = value->constant();
      const auto numbers = constant ? constant->numbers() : std::nullopt;
      if (!numbers && value->type != ElementType::f32) return std::nullopt;
      if (value->type == ElementType::f32) {
        norm.inputs.push_back(value);
      } else {
        norm.constants.emplace_back(numbers->begin(), numbers->end());
      }
    }
    if (!norm.constants.empty() && norm.inputs.size() > 1) return std::nullopt;
    return norm;
  }
  if (node.op_type != "InstanceNorm" || node.domain != onnx_domain) return std::nullopt;
  Norm norm{make_operator(node), node.inputs, {}};
  if (norm.op->get("activation") != AttributeValue(std::string("none"))) return std::nullopt;
  return norm;
}

void fuse_activations(Rewriter& rewriter, Graph& graph) {
  for (Node* node : graph.nodes()) {
    const auto norm = norm_of(*node);
    if (!norm || node->output() == nullptr || !node->output()->type || !node->input(0)->rank()) continue;
    Value& normalized = *node->output();
    // A transposition may stand between the two: it moves the activation's input, not its numbers.
    Node* next = normalized.uses.size() == 1 ? normalized.uses[0].node : nullptr;
    Node* between = next != nullptr && next->is("Transpose") ? next : nullptr;
    if (between != nullptr) next = between->output()->uses.size() == 1 ? between->output()->uses[0].node : nullptr;
    if (next == nullptr || next->graph != &graph || next->output() == nullptr) continue;
    const auto activation = activation_of(*next);
    if (!activation) continue;
    const auto dtype = to_dtype(*normalized.type);
    if (!dtype || !is_floating_point(*dtype) || *node->input(0)->rank() < least_rank ||
        *node->input(0)->rank() > most_rank) {
      continue;
    }
    const auto near = [&](const std::string& reason) {
      rewriter.near_miss("InstanceNorm, activation",
                         {.node = next, .matched_nodes = 2, .pattern_nodes = 2, .reason = reason});
    };
    const Value& before = between != nullptr ? *between->output() : normalized;
    if (before.is_output() || normalized.is_output()) {
      near(fmt::format("'{}' inside the match is an output of the graph", before.name));
      continue;
    }
    if (const Status status = norm->op->set(*activation); !status.ok()) {
      near(status.message());
      continue;
    }
    if (!is_wanted(rewriter, *norm->op, *node->input(0), norm->inputs.size() + norm->constants.size())) continue;
    std::vector<std::string> names;
    for (const Value* value : norm->inputs) names.push_back(value == nullptr ? "" : value->name);
    std::vector<Node*> nodes{node};
    if (between != nullptr) nodes.push_back(between);
    nodes.push_back(next);
    rewriter.apply({.nodes = nodes,
                    .inputs = {node->input(0)},
                    .outputs = {next->output()},
                    .replacement = to_text(*norm->op),
                    .reason = "the activation needs no layer of its own",
                    .by_definition = "",
                    .edit = [op = norm->op, names, constants = norm->constants, y_name = next->output()->name,
                             permutation = between == nullptr ? std::optional<std::vector<std::int64_t>>()
                                                              : between->ints("perm")](Graph& edited) {
                      Value* y = edited.find(y_name);
                      Node* old = y->producer;
                      std::vector<Value*> inputs;
                      for (const std::string& name : names)
                        inputs.push_back(name.empty() ? nullptr : edited.find(name));
                      for (const auto& numbers : constants) {
                        inputs.push_back(edited.add_constant(y_name + "_parameter", TensorData::from_floats(numbers)));
                      }
                      Node* made = add_operator_node(edited, *op, inputs, {y_name + "_normalized"}, old);
                      made->name = old->name;
                      if (permutation) {
                        made = edited.add_node("Transpose", {made->output()}, {y_name + "_transposed"}, old);
                        made->attributes["perm"] = NodeAttribute(AttributeData(*permutation));
                      }
                      edited.move_output(*old, y->output_index, *made, 0);
                    }});
  }
}

/// The same formulas over other axes, which are other normalizations; matched only to say so.
const Pattern& over_other_axes() {
  static const Pattern pattern(R"(
    centered = Sub(x, ReduceMean(x, @axes){keepdims=1})
    variance = ReduceMean(Mul(centered, centered) | Pow(centered, 2), @axes){keepdims=1}
    deviation = Sqrt(Add(variance, @epsilon))
    inverse = Reciprocal(deviation) | Div(1, deviation)
    y = Div(centered, deviation) | Mul(centered, inverse)
  )",
                               std::string(pattern_name));
  return pattern;
}

bool is_over_spatial_axes(const Match& match) {
  const auto axes = averaged_axes(*match.named_nodes.at("variance"));
  const auto rank = match.value("x").rank();
  if (!axes || !rank || static_cast<std::int64_t>(axes->size()) != *rank - 2) return false;
  const bool is_one_run = axes->back() - axes->front() + 1 == axes->size();
  return is_one_run && (axes->front() == 1 || axes->front() == 2);
}

}  // namespace

void fuse_instance_norm(Rewriter& rewriter) {
  for (Graph* graph : rewriter.graphs()) {
    Finder(rewriter, *graph).run();
    for (const Match& match : find_matches(over_other_axes(), *graph).matches) {
      if (is_over_spatial_axes(match)) continue;  // what else is wrong has been said
      rewriter.near_miss(
          std::string(pattern_name),
          {.node = match.root,
           .matched_nodes = match.nodes.size(),
           .pattern_nodes = match.nodes.size(),
           .reason = fmt::format("it normalizes over the axes [{}], not over all but batch and channels",
                                 fmt::join(match.ints("axes").value_or(std::vector<std::int64_t>{}), ", "))});
    }
    fuse_activations(rewriter, *graph);
  }
}

}  // namespace graft

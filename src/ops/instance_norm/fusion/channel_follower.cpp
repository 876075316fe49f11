// Follows a tensor through the nodes that compute from it. Each value is expressed as a formula (channel_algebra.hpp),
// until a formula is (x - mean) / deviation * scale + bias.
#include "ops/instance_norm/fusion/channel_follower.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <unordered_map>
#include <utility>

#include "graft/operator/shape.hpp"
#include "passes/rewriter.hpp"

namespace graft::passes::instance_norm {

bool is_real(const onnx::Value& value) { return value.type && is_floating_point(*value.type); }

std::optional<std::vector<std::size_t>> averaged_axes(const onnx::Node& node) {
  const onnx::Value* x = node.input(0);
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

namespace {

bool is_constant_dim(const Dim& dim, std::int64_t value) { return dim.is_constant() && dim.value() == value; }

/// The formula of a value and the axis of its channels. Axis 0 of the value is the batch.
struct Followed {
  ChannelFormula formula;
  std::size_t channel_axis = 1;
};

bool keeps_dims(const onnx::Node& node) { return node.is("GlobalAveragePool") || node.int_or("keepdims", 1) != 0; }

/// Returns the tensor x of which `number` is Size(x), possibly cast to f32 or i64; null for any other value.
const onnx::Value* counted(const onnx::Value* number) {
  const auto is_wide = [](const onnx::Value& value) {
    return value.type == onnx::ElementType::f32 || value.type == onnx::ElementType::i64;
  };
  while (number != nullptr && number->producer != nullptr && number->producer->is("Cast") && is_wide(*number)) {
    number = number->producer->input(0);
  }
  const onnx::Node* size = number == nullptr ? nullptr : number->producer;
  return size != nullptr && size->is("Size") ? size->input(0) : nullptr;
}

/// Returns the number of elements in each sum of a ReduceSum, or nothing if the size of an axis is not constant. The
/// number is a double so that it can be compared with a constant.
std::optional<double> summed_elements(const onnx::Node& sum) {
  const auto axes = averaged_axes(sum);
  const onnx::Value* x = sum.input(0);
  if (!axes || !x->shape) return std::nullopt;
  double count = 1;
  for (const std::size_t axis : *axes) {
    const Dim& dim = (*x->shape)[axis];
    if (!dim.is_constant()) return std::nullopt;
    count *= static_cast<double>(dim.value());
  }
  return count;
}

/// Returns whether `count` is the number of elements in each sum of `sum`. paddle.var computes this number as
/// Div(Size(x), Size(sum)), which is a constant if the sizes are constant.
bool is_count(const onnx::Value* count, const onnx::Node& sum) {
  const onnx::Value& from = *sum.input(0);
  const onnx::Value& to = *sum.output();
  if (const auto constant = count == nullptr ? std::nullopt : count->constant()) {
    const auto number = constant->scalar();
    return number && number == summed_elements(sum);
  }
  const onnx::Node* quotient = count == nullptr ? nullptr : count->producer;
  if (quotient == nullptr || !quotient->is("Div")) return false;
  const onnx::Value* above = counted(quotient->input(0));
  const onnx::Value* below = counted(quotient->input(1));
  return above != nullptr && below != nullptr && same_shape(*above, from) && same_shape(*below, to);
}

/// Derives formulas for the values that are computed from one tensor, in terms of that tensor x and the statistics of
/// its channels.
class Follower {
 public:
  Follower(const onnx::Value& x, std::size_t channel_axis) : x_(x), channels_((*x.shape)[channel_axis].value()) {
    ChannelFormula formula;
    formula.linear = Statistic(PerChannel{1.0});
    known_.emplace(&x, Followed{formula, channel_axis});
  }

  void run(const std::vector<onnx::Node*>& nodes) {
    for (onnx::Node* node : nodes) {
      const bool concerned = divided_sum(*node) != nullptr ||
                             std::any_of(node->inputs.begin(), node->inputs.end(),
                                         [&](const onnx::Value* v) { return v != nullptr && known_.contains(v); });
      onnx::Value* y = node->output();
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

  /// Returns the values that are normalized, the last one first.
  [[nodiscard]] std::vector<NormalizedValue> results() {
    std::vector<NormalizedValue> found;
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

  /// Returns the node at which the search stopped and the reason, for the path on which the search followed the most
  /// nodes. Returns nothing if no variance was computed.
  [[nodiscard]] std::optional<onnx::NearMiss> near_miss() const {
    if (!saw_variance_ || obstacles_.empty()) return std::nullopt;
    // If two obstacles occur after the same number of nodes, the first is returned, because it causes the second.
    const auto furthest = std::max_element(obstacles_.begin(), obstacles_.end(),
                                           [](const auto& a, const auto& b) { return a.followed < b.followed; });
    return onnx::NearMiss{furthest->node, furthest->followed + 1, furthest->followed + 2,
                          fmt::format("{}: {}", onnx::describe(*furthest->node), furthest->reason)};
  }

 private:
  struct Obstacle {
    onnx::Node* node = nullptr;
    std::size_t followed = 0;
    std::string reason;
  };
  using Outcome = std::optional<Followed>;

  Outcome fail(std::string reason) {
    obstacle_ = std::move(reason);
    return std::nullopt;
  }

  [[nodiscard]] const Followed* known(const onnx::Value* value) const {
    const auto found = known_.find(value);
    return found == known_.end() ? nullptr : &found->second;
  }

  /// Returns a constant as a factor per channel of a tensor of this rank, or nothing if it varies along another axis.
  std::optional<PerChannel> per_channel(const onnx::TensorData& tensor, std::size_t rank,
                                        std::size_t channel_axis) const {
    auto numbers = tensor.numbers();
    if (!numbers || numbers->empty() || tensor.dims.size() > rank) return std::nullopt;
    if (numbers->size() == 1) return PerChannel{(*numbers)[0]};
    for (std::size_t i = 0; i < tensor.dims.size(); ++i) {
      const std::size_t axis = i + rank - tensor.dims.size();
      if (tensor.dims[i] != (axis == channel_axis ? channels_ : 1)) return std::nullopt;
    }
    return numbers;
  }

  /// Returns input i as a formula. A constant is interpreted along the channel axis of `other`, the other input.
  std::optional<Followed> operand(const onnx::Node& node, std::size_t i, const Followed* other, std::size_t rank) {
    const onnx::Value* value = node.input(i);
    if (const Followed* found = known(value)) return *found;
    const auto constant = value == nullptr ? std::nullopt : value->constant();
    if (!constant) {
      return fail(fmt::format("'{}' is not computed from '{}' and constants only", value == nullptr ? "" : value->name,
                              x_.name));
    }
    const auto numbers = per_channel(*constant, rank, other->channel_axis);
    if (!numbers) {
      return fail(fmt::format("the constant '{}' has neither one element nor one for each channel", value->name));
    }
    ChannelFormula formula;
    formula.rest = Statistic(*numbers);
    return Followed{formula, other->channel_axis};
  }

  Outcome follow(const onnx::Node& node) {
    if (const onnx::Node* sum = divided_sum(node)) return average_of_sum(node, *sum);
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
    // A cast to a type that is neither f32 nor that of x loses digits.
    if (node.is("Cast")) {
      const auto type = node.output()->type;
      return type == onnx::ElementType::f32 || type == x_.type
                 ? Outcome(*a)
                 : fail("it casts to a type that is neither f32 nor the type of x");
    }
    if (node.is("Transpose")) return transpose(node, *a);
    if (node.is("Expand")) return expand(node, *a);
    if (node.is("Reshape") || node.is("Squeeze") || node.is("Unsqueeze") || node.is("Flatten")) {
      return reshape(node, *a);
    }
    return std::nullopt;
  }

  Outcome binary(const onnx::Node& node) {
    const Followed* first = known(node.input(0));
    const Followed* second = known(node.input(1));
    const Followed* either = first != nullptr ? first : second;
    const auto rank = static_cast<std::size_t>(node.output()->rank().value_or(0));
    const onnx::Value& source = *node.input(first != nullptr ? 0 : 1);
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

  /// Returns the formula of sqrt(variance + epsilon), the deviation, for the square root of `formula`; nothing for any
  /// other formula.
  Outcome root(const ChannelFormula& formula, std::size_t channel_axis) {
    if (formula.has_x() || formula.rest.is_constant()) return std::nullopt;
    const auto factor = formula.rest.factor({0, 1, 0});
    const auto constant = formula.rest.factor({});
    const std::size_t expected = (factor ? 1 : 0) + (constant ? 1 : 0);
    if (!factor || formula.rest.terms().size() != expected) {
      return fail(fmt::format("the square root is of {}, not of variance + epsilon", formula.rest.to_string()));
    }
    if (common_value(*factor) != 1.0) {
      return fail(
          fmt::format("the square root is of {}: the variance is not divided by the count", formula.rest.to_string()));
    }
    const auto epsilon = constant ? common_value(*constant) : std::optional(0.0);
    if (!epsilon) return fail("epsilon differs between channels; InstanceNorm supports one value");
    if (*epsilon < 0 || !std::isfinite(*epsilon))
      return fail(fmt::format("epsilon is {}; it must be at least 0 and finite", *epsilon));
    if (epsilon_ && *epsilon_ != *epsilon) return fail("there are two different epsilons; InstanceNorm supports one");
    epsilon_ = epsilon;
    ChannelFormula result;
    result.rest = Statistic({0, 0, 1}, {1.0});
    return Followed{result, channel_axis};
  }

  Outcome power(const onnx::Node& node) {
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
    if (*exponent != 0.5 && *exponent != -0.5)
      return fail(fmt::format("its exponent is {}; it must be -1, -0.5, 0.5, 1 or 2", *exponent));
    auto result = root(a->formula, a->channel_axis);
    return result && *exponent < 0 ? reciprocal(*result) : result;
  }

  /// Returns the formula of the input of Max(v, 0), Clip(v, 0) and Relu(v), which do not change a variance v; nothing
  /// for any other node.
  Outcome not_below_zero(const onnx::Node& node) {
    const Followed* a = known(node.input(0));
    if (a == nullptr) a = known(node.input(1));
    if (a == nullptr || a->formula.has_x()) return std::nullopt;
    const auto& terms = a->formula.rest.terms();
    if (terms.size() != 1 || common_value(a->formula.rest.factor({0, 1, 0}).value_or(PerChannel{})) != 1.0) {
      return std::nullopt;
    }
    const auto is_zero = [](const onnx::Value* value) {
      const auto constant = value == nullptr ? std::nullopt : value->constant();
      return constant && constant->scalar() == 0.0;
    };
    if (node.is("Relu")) return *a;
    if (node.is("Max")) {
      const bool of_two = node.inputs.size() == 2 && (is_zero(node.input(0)) || is_zero(node.input(1)));
      return of_two ? Outcome(*a) : fail("the variance is clipped to other limits than a lower limit of 0");
    }
    return is_zero(node.input(1)) && node.input(2) == nullptr
               ? Outcome(*a)
               : fail("the variance is clipped to other limits than a lower limit of 0");
  }

  /// Returns the ReduceSum that computes the dividend of a Div, if the input of the ReduceSum has a known formula; null
  /// for any other node.
  [[nodiscard]] const onnx::Node* divided_sum(const onnx::Node& node) const {
    const onnx::Value* divided = node.is("Div") ? node.input(0) : nullptr;
    const onnx::Node* sum = divided == nullptr ? nullptr : divided->producer;
    return sum != nullptr && sum->is("ReduceSum") && known(sum->input(0)) != nullptr ? sum : nullptr;
  }

  Outcome average_of_sum(const onnx::Node& quotient, const onnx::Node& sum) {
    if (!is_count(quotient.input(1), sum)) return fail("the sum is not divided by the number of its elements");
    if (quotient.output()->rank() != sum.output()->rank()) return fail("the ranks of its inputs differ");
    return average(sum, *known(sum.input(0)));
  }

  Outcome average(const onnx::Node& node, const Followed& a) {
    const auto axes = averaged_axes(node);
    const onnx::Value& x = *node.input(0);
    if (!axes || !x.shape) return std::nullopt;
    std::size_t kept_before_channel = 0;
    for (std::size_t axis = 0; axis < x.shape->size(); ++axis) {
      const bool is_averaged = std::find(axes->begin(), axes->end(), axis) != axes->end();
      const bool is_kept = axis == 0 || axis == a.channel_axis;
      if (is_kept ? is_averaged : !is_averaged && !is_constant_dim((*x.shape)[axis], 1)) {
        return fail(fmt::format("it averages over the axes [{}] of {}, not over all axes except batch and channels",
                                fmt::join(*axes, ", "), to_string(*x.shape)));
      }
      if (axis < a.channel_axis && !is_averaged) ++kept_before_channel;
    }
    ChannelFormula formula;
    formula.rest = a.formula.average();
    return Followed{formula, keeps_dims(node) ? a.channel_axis : kept_before_channel};
  }

  Outcome transpose(const onnx::Node& node, const Followed& a) {
    const auto permutation = node.ints("perm");
    if (!permutation || permutation->empty() || (*permutation)[0] != 0) return std::nullopt;
    Followed result = a;
    std::int64_t last = 0;
    for (std::size_t axis = 1; axis < permutation->size(); ++axis) {
      const std::int64_t from = (*permutation)[axis];
      if (from == static_cast<std::int64_t>(a.channel_axis)) {
        result.channel_axis = axis;
      } else {
        if (a.formula.has_x() && from < last) return fail("the spatial axes are permuted");
        last = from;
      }
    }
    return result;
  }

  Outcome expand(const onnx::Node& node, const Followed& a) {
    const onnx::Value& x = *node.input(0);
    const onnx::Value& y = *node.output();
    if (!y.rank() || x.rank() != y.rank()) return std::nullopt;
    return a;
  }

  /// Returns the formula of a reshape that keeps batch and channels, with the axis of the channels after it; nothing
  /// for any other reshape.
  Outcome reshape(const onnx::Node& node, const Followed& a) {
    const onnx::Value& x = *node.input(0);
    const onnx::Value& y = *node.output();
    if (!x.shape || !y.shape || y.shape->size() < 2) return std::nullopt;
    const Shape& before = *x.shape;
    const Shape& after = *y.shape;
    // Returns the product of the sizes of some axes, or 0 if one is not constant.
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
      // If two of the three parts keep their sizes, the third part does as well.
      if (same_middle && (same_inner || same_batch)) return Followed{a.formula, axis};
    }
    return fail(fmt::format("{} becomes {}: the reshape changes the channels", to_string(before), to_string(after)));
  }

  Outcome instance_normalization(const onnx::Node& node) {
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
    if (scale->empty() || scale->size() != bias->size())
      return fail("its scale and bias do not have the same number of channels");
    const double epsilon = node.float_or("epsilon", 1e-5F);
    if (epsilon_ && *epsilon_ != epsilon) return fail("there are two different epsilons; InstanceNorm supports one");
    epsilon_ = epsilon;
    ChannelFormula formula;
    formula.linear = Statistic({0, 0, -1}, *scale);
    formula.rest = Statistic({1, 0, -1}, *scale) * Statistic(PerChannel{-1.0}) + Statistic(*bias);
    return Followed{formula, 1};
  }

  /// Returns the scale and the bias of a formula (x - mean) / deviation * scale + bias; nothing for any other formula.
  /// Sets `why_not` if such a formula cannot be fused.
  std::optional<NormalizedValue> normalized(const ChannelFormula& formula, std::string& why_not) const {
    if (!formula.square.is_zero() || formula.linear.is_zero()) return std::nullopt;
    const auto scale = formula.linear.factor({0, 0, -1});
    if (!scale || formula.linear.terms().size() != 1) return std::nullopt;
    if (!epsilon_ || *epsilon_ == 0) {
      why_not = "there is no epsilon: a channel of equal values becomes NaN, and InstanceNorm would not return NaN";
      return std::nullopt;
    }
    const Statistic left = formula.rest + Statistic({1, 0, -1}, *scale);
    if (!left.is_constant()) {
      why_not = fmt::format("x is divided by the deviation, but {} is added to the quotient, not -mean / deviation",
                            formula.rest.to_string());
      return std::nullopt;
    }
    return NormalizedValue{nullptr, 1, *scale, left.factor({}).value_or(PerChannel{0.0})};
  }

  const onnx::Value& x_;
  std::int64_t channels_;
  std::unordered_map<const onnx::Value*, Followed> known_;
  std::vector<onnx::Value*> order_;
  std::optional<double> epsilon_;
  bool saw_variance_ = false;
  std::string obstacle_;
  std::vector<Obstacle> obstacles_;
};

}  // namespace

FollowedTensor follow_channels(const onnx::Value& x, std::size_t channel_axis, const std::vector<onnx::Node*>& nodes) {
  Follower follower(x, channel_axis);
  follower.run(nodes);
  FollowedTensor found;
  found.normalized = follower.results();  // Set before near_miss(), because results() adds obstacles.
  found.epsilon = follower.epsilon();
  found.near_miss = follower.near_miss();
  return found;
}

}  // namespace graft::passes::instance_norm

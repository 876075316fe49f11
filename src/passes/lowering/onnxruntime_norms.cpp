// Normalizations that ONNX Runtime's optimizer fuses with the sums before them.
//
//   y, _, _, s = SkipLayerNormalization(x, skip, w, b, bias)   becomes   s = x + skip + bias; y = LayerNormalization(s)
//   SimplifiedLayerNormalization(x, w)                         becomes   y = x / sqrt(ReduceMean(x * x) + epsilon) * w
//   EmbedLayerNormalization(ids, ...)                          becomes   y = LayerNormalization(the sum of Gather)
//   GroupNorm(x, w, b)                                         becomes   y = InstanceNormalization(the groups) * w + b
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "passes/lowering/lowering.hpp"

namespace graft::passes {
namespace {

std::string epsilon_of(const Site& site, float otherwise) {
  return fmt::format("{:#.9g}", site.node().float_or("epsilon", otherwise));
}

/// Writes the node that computes output y0 as LayerNormalization of the f32 tensor `x` over the last axis. `scale`,
/// `bias` and `like` are indices of inputs of the node: y0 is cast to the type of input `like`, and the bias may be
/// absent.
void write_layer_normalization(Site& site, Replacement& result, const std::string& x, std::size_t scale,
                               std::size_t bias, std::size_t like) {
  const onnx::ElementType type = site.type(like);
  std::string inputs = x + ", " + result.in_f32(fmt::format("x{}", scale), type);
  if (site.has_input(bias)) inputs += ", " + result.in_f32(fmt::format("x{}", bias), type);
  result.give("y0", type, fmt::format("LayerNormalization<axis=-1, epsilon={}>({})", epsilon_of(site, 1e-12F), inputs));
}

/// Writes the f32 sum of inputs 0 and 1 and of input `bias` if it is present, also as output 3 if that is used, and
/// returns its name. Returns nothing, and stores the reason with site.no(), if the node cannot be lowered.
std::optional<std::string> sum_with_skip(Site& site, Replacement& result, std::size_t bias) {
  if (!site.is_real(0)) return site.no_type(0);
  for (const auto& [output, name] : {std::pair{1, "mean"}, std::pair{2, "inv_std_var"}}) {
    if (site.is_used(static_cast<std::size_t>(output))) {
      return site.no(fmt::format("its output {}, which is for training, is used", name));
    }
  }
  const onnx::ElementType type = site.type(0);
  std::string sum = "with_skip";
  const std::string skip = result.in_f32("x1", type);
  result.line(fmt::format("with_skip = Add({}, {})", result.in_f32("x0", type), skip));
  if (site.has_input(bias)) {
    result.line(fmt::format("with_bias = Add(with_skip, {})", result.in_f32(fmt::format("x{}", bias), type)));
    sum = "with_bias";
  }
  if (site.is_used(3)) result.line(fmt::format("y3 = Cast<to={}>({})", to_string(type), sum));
  return sum;
}

}  // namespace

std::optional<Replacement> lower_skip_layer_normalization(Site& site) {
  Replacement result;
  const auto sum = sum_with_skip(site, result, 4);
  if (!sum) return std::nullopt;
  write_layer_normalization(site, result, *sum, 2, 3, 0);
  result.summary = "Add and LayerNormalization";
  return result;
}

std::optional<Replacement> lower_simplified_layer_normalization(Site& site) {
  const onnx::Node& node = site.node();
  const bool has_skip = node.op_type == "SkipSimplifiedLayerNormalization";
  Replacement result;
  std::string x;
  std::vector<std::int64_t> axes = {-1};
  if (has_skip) {
    const auto sum = sum_with_skip(site, result, 3);
    if (!sum) return std::nullopt;
    x = *sum;
  } else {
    if (!site.is_real(0)) return site.no_type(0);
    x = result.in_f32("x0", site.type(0));
    if (const std::int64_t axis = node.int_or("axis", -1); axis != -1) {
      const Shape* shape = site.shape(0);
      if (shape == nullptr) return site.no("its rank is not known");
      const auto rank = static_cast<std::int64_t>(shape->size());
      const std::int64_t first = axis + (axis < 0 ? rank : 0);
      if (first < 0 || first >= rank) return site.no("its axis is outside its rank");
      axes.resize(static_cast<std::size_t>(rank - first));
      std::iota(axes.begin(), axes.end(), first);
    }
  }
  const std::size_t scale = has_skip ? 2 : 1;
  if (!site.is_real(scale)) return site.no_type(scale);
  result.line(fmt::format("squares = Mul({0}, {0})", x));
  result.line(fmt::format("mean = ReduceMean<axes={}, keepdims=1>(squares)", axes));
  const float epsilon = node.float_or("epsilon", has_skip ? 1e-12F : 1e-5F);
  result.line(fmt::format("above = Add(mean, {})", result.number("epsilon", epsilon)));
  result.line("root = Sqrt(above)");
  if (!has_skip && site.is_used(1)) result.line("y1 = Reciprocal(root)");
  result.line(fmt::format("normalized = Div({}, root)", x));
  const std::string factor = result.in_f32(fmt::format("x{}", scale), site.type(scale));
  result.give("y0", site.type(scale), fmt::format("Mul(normalized, {})", factor));
  result.summary = fmt::format("{}the division by the root of the mean square", has_skip ? "Add, and " : "");
  return result;
}

std::optional<Replacement> lower_embed_layer_normalization(Site& site) {
  enum Input { ids, segment_ids, words, positions, segments, gamma, beta, mask, position_ids };
  if (!site.is_real(words)) return site.no_type(words);
  const onnx::ElementType type = site.type(words);
  Replacement result;
  result.line("of_words = Gather(x2, x0)");
  if (site.has_input(position_ids)) {
    result.line("of_positions = Gather(x3, x8)");
  } else {
    const std::string first = result.ints("first", {0});
    result.line("length = Shape<start=1, end=2>(x0)");
    result.line(fmt::format("of_positions = Slice(x3, {0}, length, {0})", first));
  }
  result.line(fmt::format("sum = Add({}, {})", result.in_f32("of_words", type), result.in_f32("of_positions", type)));
  std::string sum = "sum";
  if (site.has_input(segment_ids) && site.has_input(segments)) {
    result.line("of_segments = Gather(x4, x1)");
    result.line(fmt::format("with_segments = Add(sum, {})", result.in_f32("of_segments", type)));
    sum = "with_segments";
  }
  write_layer_normalization(site, result, sum, gamma, beta, words);
  if (site.is_used(1)) {
    if (site.has_input(mask)) {
      // ONNX Runtime counts the elements that are 1.
      const std::string one = result.constant("one", onnx::TensorData::from_numbers(onnx::ElementType::i32, {}, {1}));
      result.line(fmt::format("shown = Equal(x7, {})", one));
      result.line("counted = Cast<to=int32>(shown)");
      result.line(fmt::format("y1 = ReduceSum<keepdims=0>(counted, {})", result.ints("second", {1})));
    } else {
      result.line("batch = Shape<start=0, end=1>(x0)");
      result.line("y1 = ConstantOfShape<value=int32([0])>(batch)");
    }
  }
  if (site.is_used(2)) result.line(fmt::format("y2 = Cast<to={}>({})", to_string(type), sum));
  result.summary = "Gather, Add and LayerNormalization";
  return result;
}

void write_group_normalization(Replacement& result, const std::string& name, const std::string& x, std::size_t rank,
                               const GroupNormalization& norm) {
  const std::vector<double> ones(static_cast<std::size_t>(norm.groups), 1);
  const std::vector<double> zeros(static_cast<std::size_t>(norm.groups), 0);
  result.line(fmt::format("groups = Reshape({}, {})", x, result.ints("as_groups", {0, norm.groups, -1})));
  result.line(fmt::format("apart = InstanceNormalization<epsilon={}>(groups, {}, {})", norm.epsilon,
                          result.constant("ones", f32_tensor({norm.groups}, ones)),
                          result.constant("zeros", f32_tensor({norm.groups}, zeros))));
  result.line(fmt::format("shape = Shape({})", x));
  result.line("normalized = Reshape(apart, shape)");
  std::vector<std::int64_t> channels(rank - 1, 1);
  channels.front() = -1;
  const std::string as_channels = result.ints("as_channels", channels);
  result.line(fmt::format("scale = Reshape({}, {})", norm.scale, as_channels));
  result.line(fmt::format("shift = Reshape({}, {})", norm.shift, as_channels));
  result.line("scaled = Mul(normalized, scale)");
  result.line(fmt::format("{} = Add(scaled, shift)", name));
}

std::optional<Replacement> lower_group_norm(Site& site) {
  const onnx::Node& node = site.node();
  if (!site.is_real(0)) return site.no_type(0);
  if (!site.is_real(1)) return site.no_type(1);
  const Shape* shape = site.shape(0);
  if (shape == nullptr || shape->size() != 4) return site.no("its input does not have rank 4");
  const std::int64_t groups = node.int_or("groups", 0);
  if (groups < 1) return site.no("its number of groups is not positive");
  check_table({groups});
  const std::int64_t activation = node.int_or("activation", 0);
  if (activation != 0 && activation != 1) return site.no("its activation is neither 0 nor 1");
  const bool channels_last = node.int_or("channels_last", 1) != 0;
  const onnx::ElementType type = site.type(0);
  Replacement result;
  std::string x = result.in_f32("x0", type);
  if (node.op_type == "SkipGroupNorm") {
    const Shape* skip = site.shape(3);
    if (skip == nullptr) return site.no("the rank of its skip is not known");
    std::string added = result.in_f32("x3", type);
    if (skip->size() == 2) {
      const std::string sides =
          result.ints("sides", channels_last ? std::vector<std::int64_t>{1, 2} : std::vector<std::int64_t>{2, 3});
      result.line(fmt::format("skip = Unsqueeze({}, {})", added, sides));
      added = "skip";
    }
    result.line(fmt::format("with_skip = Add({}, {})", x, added));
    x = "with_skip";
    if (site.has_input(4)) {
      std::string bias = result.in_f32("x4", type);
      if (!channels_last) {
        result.line(fmt::format("bias = Reshape({}, {})", bias, result.ints("as_channels", {-1, 1, 1})));
        bias = "bias";
      }
      result.line(fmt::format("with_bias = Add({}, {})", x, bias));
      x = "with_bias";
    }
    if (site.is_used(1)) result.line(fmt::format("y1 = Cast<to={}>({})", to_string(type), x));
  }
  if (channels_last) {
    result.line(fmt::format("planes = Transpose<perm=[0, 3, 1, 2]>({})", x));
    x = "planes";
  }
  write_group_normalization(result, "shifted", x, shape->size(),
                            {.groups = groups,
                             .epsilon = epsilon_of(site, 1e-5F),
                             .scale = result.in_f32("x1", site.type(1)),
                             .shift = result.in_f32("x2", site.type(1))});
  std::string y = "shifted";
  if (activation == 1) {
    result.line("share = Sigmoid(shifted)");
    result.line("active = Mul(shifted, share)");
    y = "active";
  }
  result.give("y0", type, fmt::format("{}({})", channels_last ? "Transpose<perm=[0, 2, 3, 1]>" : "Identity", y));
  result.summary = "InstanceNormalization of the groups, Mul and Add";
  return result;
}

}  // namespace graft::passes

// Pass fuse_normalize:
//   Mul(L2Normalize(x, epsilon_mode=add), scale)          becomes  Normalize(x, scale)
//   Mul(x, Div(scale, Sqrt(Add(ReduceSum(x^2), epsilon))))  becomes  Normalize(x, scale)
//
// The first form is SSD's, with a norm over the channels and a factor for each channel. TensorFlow's optimizer rewrites
// it to the second form.
#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <optional>
#include <string>
#include <vector>

#include "graft/operator/registry.hpp"
#include "onnx/matcher.hpp"
#include "onnx/operator_node.hpp"
#include "passes/fuse.hpp"
#include "passes/operator_fusion.hpp"

namespace graft::passes {
namespace {

const onnx::Pattern& scaled_norm() {
  static const onnx::Pattern pattern(
      "y = Mul(graft::L2Normalize(x){axes=@axes, epsilon=@epsilon, epsilon_mode=@mode}, @scale)", "Normalize");
  return pattern;
}

const onnx::Pattern& factor_first() {
  static const onnx::Pattern pattern(R"(
    square = Mul(x, x) | Pow(x, 2)
    sum = ReduceSum(square, @axes){keepdims=1} | ReduceSumSquare(x, @axes){keepdims=1}
    guarded = Add(sum, @epsilon)
    norm = Sqrt(guarded) | Pow(guarded, 0.5)
    inverse = Reciprocal(norm) | Div(1, norm) | Pow(guarded, -0.5)
    y = Mul(x, Mul(inverse, @scale) | Div(@scale, norm))
  )",
                                     "Normalize, the factor first");
  return pattern;
}

struct Found {
  std::shared_ptr<Operator> op;
  std::vector<float> scale;
  std::string obstacle;
};

/// Returns one number, or one number per channel of a tensor of this rank; nothing if the factor varies along another
/// axis.
std::optional<std::vector<float>> factors(const onnx::TensorData& scale, std::int64_t rank, const Dim& channels) {
  const auto numbers = scale.numbers();
  if (!numbers || static_cast<std::int64_t>(scale.dims.size()) > rank) return std::nullopt;
  std::vector<float> result(numbers->begin(), numbers->end());
  if (result.size() == 1) return result;
  const std::int64_t missing = rank - static_cast<std::int64_t>(scale.dims.size());
  for (std::size_t i = 0; i < scale.dims.size(); ++i) {
    const bool is_channel = static_cast<std::int64_t>(i) + missing == 1;
    if (scale.dims[i] != 1 && !(is_channel && channels.is_constant() && channels.value() == scale.dims[i])) {
      return std::nullopt;
    }
  }
  return result;
}

Found read(const onnx::Match& match) {
  const auto fail = [](std::string why) { return Found{nullptr, {}, std::move(why)}; };
  const onnx::Value& x = match.value("x");
  if (std::string obstacle = obstacle_of_x(match, "Normalize"); !obstacle.empty()) return fail(std::move(obstacle));
  const std::int64_t rank = *x.rank();
  constexpr std::int64_t least_rank = 2;
  if (rank < least_rank) return fail("x has fewer than two dimensions, so it has no channels");
  if (match.text("mode").value_or("add") != "add") {
    return fail(fmt::format("epsilon_mode is {}; Normalize supports only add, which adds epsilon to the sum of squares",
                            match.text("mode").value_or("")));
  }
  std::vector<std::int64_t> all(static_cast<std::size_t>(rank - 1));
  std::iota(all.begin(), all.end(), 1);
  auto axes = match.ints("axes").value_or(std::vector<std::int64_t>{});
  for (std::int64_t& axis : axes) axis += axis < 0 ? rank : 0;
  std::sort(axes.begin(), axes.end());
  const bool over_channels = axes == std::vector<std::int64_t>{1};
  if (!over_channels && axes != all) {
    return fail(
        fmt::format("the norm is over the axes [{}]; it must be over the channels, or over all axes except the batch",
                    fmt::join(axes, ", ")));
  }
  if (!match.scalar("epsilon")) return fail("epsilon has several values; Normalize supports one");
  auto scale = factors(match.constants.find("scale")->second, rank, (*x.shape)[1]);
  if (!scale) return fail("the factor has neither one value nor one for each channel");
  Found found{find_operator("Normalize")->create(), std::move(*scale), ""};
  const std::vector<NamedAttribute> attributes{{"across_spatial", std::int64_t{over_channels ? 0 : 1}},
                                               {"channel_shared", std::int64_t{found.scale.size() == 1 ? 1 : 0}},
                                               {"epsilon", static_cast<float>(match.scalar("epsilon").value_or(0))}};
  if (const Status status = found.op->set(attributes); !status.ok()) return fail(status.message());
  return found;
}

void fuse(Rewriter& rewriter, const onnx::Pattern& pattern) {
  for (onnx::Graph* graph : rewriter.graphs()) {
    const onnx::MatchResult result = find_matches(pattern, *graph);
    for (const onnx::Match& match : result.matches) {
      Found found = read(match);
      if (!found.op) {
        rewriter.near_miss(pattern.name(), match, found.obstacle);
        continue;
      }
      onnx::Value& x = match.value("x");
      if (!is_wanted(rewriter, *found.op, x, *match.root->output(), 2)) continue;
      rewriter.apply({.nodes = match.nodes,
                      .inputs = {&x},
                      .outputs = {match.root->output()},
                      .replacement = to_text(*found.op),
                      .reason = "x / sqrt(sum(x^2) + epsilon) * scale, as in SSD",
                      .by_definition = "",
                      .edit = [op = found.op, scale = found.scale, x_name = x.name,
                               y_name = match.root->output()->name](onnx::Graph& edited) {
                        onnx::Value* y = edited.find(y_name);
                        onnx::Node* old = y->producer;
                        onnx::Value* factor =
                            edited.add_constant(y_name + "_scale", onnx::TensorData::from_floats(scale));
                        onnx::Node* node = add_operator_node(edited, *op, {edited.find(x_name), factor}, {y_name}, old);
                        node->name = old->name;
                        edited.move_output(*old, y->output_index, *node, 0);
                      }});
    }
  }
}

void fuse_normalize(Rewriter& rewriter) {
  fuse(rewriter, scaled_norm());
  fuse(rewriter, factor_first());
}

}  // namespace

extern const OperatorFusion normalize_fusion{
    .pass = {"fuse_normalize", "an L2Normalize that fuse_l2_normalize created, with the factor after it",
             fuse_normalize},
    .after = "fuse_l2_normalize"};

}  // namespace graft::passes

// Pass fuse_l2_normalize: x / |x| in the forms that frameworks write becomes L2Normalize(x). For example
//   Mul(x, Reciprocal(Sqrt(Max(ReduceSum(Mul(x, x)), epsilon))))  becomes  L2Normalize(x, epsilon_mode=max)
//   Div(x, Expand(Clip(ReduceL2(x), epsilon), Shape(x)))          becomes  L2Normalize(x, epsilon_mode=norm)
//
// TensorFlow and Keras (through tf2onnx) write squares, sum, clamp, root, reciprocal and product. PyTorch writes
// ReduceL2, Clip and, for F.normalize, an Expand of the norm to the shape of x. PaddlePaddle (through paddle2onnx)
// writes its p-norm with p = 2 as powers of absolute values. tests/golden/exports holds the graphs that each exporter
// writes, tests/golden/near_misses graphs that only resemble them.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "graft/operator/registry.hpp"
#include "onnx/matcher.hpp"
#include "passes/fuse.hpp"
#include "passes/operator_fusion.hpp"

namespace graft::passes {
namespace {

struct Form {
  std::string_view epsilon_mode;
  std::string_view why;
  onnx::Pattern pattern;
};

/// Lines of a pattern that match the sum of squares, with keepdims; norm_of_sum matches the norm.
constexpr std::string_view sum_of_squares = R"(
  square = Mul(x, x) | Pow(x, 2) | Pow(Abs(x), 2)
  sum = ReduceSum(square, @axes){keepdims=1} | ReduceSumSquare(x, @axes){keepdims=1}
)";
constexpr std::string_view norm_of_sum = R"(
  norm = ReduceL2(x, @axes){keepdims=1} | Sqrt(sum) | Pow(sum, 0.5)
)";
/// Lines of a pattern that match the division by `divisor`. An Expand to the shape of x may precede it.
constexpr std::string_view division = R"(
  inverse = Reciprocal(divisor) | Div(1, divisor)
  y = Div(x, Expand(divisor, target) | divisor) | Mul(x, Expand(inverse, target) | inverse)
)";

Form form(std::string_view mode, std::string_view name, std::string_view why, const std::string& text) {
  return {mode, why, onnx::Pattern(text, fmt::format("L2Normalize, epsilon_mode {}{}", mode, name))};
}

std::vector<Form> make_forms() {
  const std::string sum(sum_of_squares);
  const std::string norm = sum + std::string(norm_of_sum);
  const std::string divide(division);
  std::vector<Form> forms;
  forms.push_back(form("max", "", "x * rsqrt(max(sum(x^2), epsilon)), as tf.math.l2_normalize",
                       sum +
                           "bounded = Max(sum, @epsilon) | Clip(sum, @epsilon, @ceiling?)\n"
                           "divisor = Sqrt(bounded) | Pow(bounded, 0.5)\n" +
                           divide));
  forms.push_back(form("max", ", by a power", "x * max(sum(x^2), epsilon)^-0.5",
                       sum + "bounded = Max(sum, @epsilon) | Clip(sum, @epsilon, @ceiling?)\n"
                             "y = Mul(x, Pow(bounded, -0.5))"));
  forms.push_back(form("norm", "", "x / max(|x|, epsilon), as torch.nn.functional.normalize",
                       norm + "divisor = Max(norm, @epsilon) | Clip(norm, @epsilon, @ceiling?)\n" + divide));
  forms.push_back(form("norm", ", by its reciprocal", "x * min(1 / |x|, 1 / epsilon), as Keras' UnitNormalization",
                       norm + "inverse = Reciprocal(norm) | Div(1, norm) | Pow(sum, -0.5)\n"
                              "y = Mul(x, Min(inverse, @cap))"));
  forms.push_back(form("norm", ", dimension put back", "x / max(|x|, epsilon), the norm taken without keepdims",
                       "square = Mul(x, x) | Pow(x, 2) | Pow(Abs(x), 2)\n"
                       "flat = ReduceSum(square, @axes){keepdims=0}\n"
                       "norm = ReduceL2(x, @axes){keepdims=0} | Sqrt(flat) | Pow(flat, 0.5)\n"
                       "divisor = Unsqueeze(Max(norm, @epsilon) | Clip(norm, @epsilon, @ceiling?), @unsqueezed)"
                       " | Max(Unsqueeze(norm, @unsqueezed), @epsilon)"
                       " | Clip(Unsqueeze(norm, @unsqueezed), @epsilon, @ceiling?)\n" +
                           divide));
  forms.push_back(form("add", "", "x / sqrt(sum(x^2) + epsilon), as Caffe and hand-written code",
                       sum + "divisor = Sqrt(Add(sum, @epsilon)) | Pow(Add(sum, @epsilon), 0.5)\n" + divide));
  forms.push_back(
      form("add", ", by a power", "x * (sum(x^2) + epsilon)^-0.5", sum + "y = Mul(x, Pow(Add(sum, @epsilon), -0.5))"));
  return forms;
}

const std::vector<Form>& forms() {
  static const std::vector<Form> all = make_forms();
  return all;
}

/// A common formula that does not correspond to any of the three modes. It is matched only to report why it is not
/// fused.
struct Lookalike {
  std::string_view reason;
  onnx::Pattern pattern;
};

const std::vector<Lookalike>& lookalikes() {
  static const std::vector<Lookalike> all = [] {
    const std::string norm = std::string(sum_of_squares) + std::string(norm_of_sum);
    std::vector<Lookalike> result;
    const auto add = [&](std::string_view reason, const std::string& text) {
      result.push_back({reason, onnx::Pattern(norm + text, "L2Normalize")});
    };
    constexpr std::string_view none =
        "there is no epsilon: a vector of zeros becomes NaN, and L2Normalize would not return NaN";
    add(none, "y = Div(x, Expand(norm, _) | norm)");
    add(none, "inverse = Reciprocal(norm) | Div(1, norm)\ny = Mul(x, inverse)");
    add("epsilon is added to the norm, which is not one of the modes max, norm and add",
        "y = Div(x, Add(norm, @epsilon))");
    add("the norm is divided by x; L2Normalize divides x by the norm",
        "y = Div(Max(norm, @epsilon) | Clip(norm, @epsilon, @ceiling?), x)");
    return result;
  }();
  return all;
}

/// Returns the axes counted from the front and sorted, or nothing if an axis is out of range.
std::optional<std::vector<std::int64_t>> normalized(std::vector<std::int64_t> axes, std::int64_t rank) {
  for (std::int64_t& axis : axes) {
    if (axis < -rank || axis >= rank) return std::nullopt;
    if (axis < 0) axis += rank;
  }
  std::sort(axes.begin(), axes.end());
  return axes;
}

bool is_whole_shape_of(const onnx::Value& target, const onnx::Value& x) {
  const onnx::Node* shape = target.producer;
  return shape != nullptr && shape->is("Shape") && shape->input(0) == &x && shape->int_or("start", 0) == 0 &&
         shape->attribute("end") == nullptr;
}

Fusion read(const Form& form, const onnx::Match& match) {
  const onnx::Value& x = match.value("x");
  if (std::string obstacle = obstacle_of_x(match, "L2Normalize"); !obstacle.empty()) return obstacle;
  const std::int64_t rank = x.rank().value();

  auto axes = match.ints("axes");
  if (!axes || axes->empty()) return Fusion("the sum has no axes");
  axes = normalized(*axes, rank);
  if (!axes) return Fusion(fmt::format("an axis is out of range for x of rank {}", rank));
  if (match.has("unsqueezed")) {
    const auto back = normalized(match.ints("unsqueezed").value_or(std::vector<std::int64_t>{}), rank);
    if (back != axes)
      return Fusion("the Unsqueeze of the norm inserts other axes than those over which the norm is computed");
  }
  if (match.has("target")) {
    const onnx::Value& target = match.value("target");
    const onnx::Value* expanded = nullptr;
    for (const onnx::Use& use : target.uses) {
      const bool matched = std::find(match.nodes.begin(), match.nodes.end(), use.node) != match.nodes.end();
      if (matched && use.node->is("Expand")) expanded = use.node->output();
    }
    const bool to_x = is_whole_shape_of(target, x) || (expanded != nullptr && same_shape(*expanded, x));
    if (!to_x) return Fusion("the norm is expanded to a shape that may differ from the shape of x");
  }
  if (match.has("ceiling") && match.scalar("ceiling").value_or(0) < std::numeric_limits<float>::max()) {
    return Fusion("the Clip also has an upper limit; L2Normalize supports only a lower limit");
  }

  const bool by_cap = match.has("cap");
  const std::string_view constant = by_cap ? "cap" : "epsilon";
  const auto number = match.scalar(constant);
  if (!number) {
    return Fusion(fmt::format("{} has {} values; L2Normalize supports one",
                              by_cap ? "the cap on the reciprocal" : "epsilon",
                              match.constants.find(constant)->second.element_count()));
  }
  const double epsilon = by_cap ? 1 / *number : *number;
  if (!(epsilon >= 0) || std::isinf(epsilon)) {
    return Fusion(fmt::format("epsilon is {}; it must be at least 0 and finite", epsilon));
  }

  std::shared_ptr<Operator> op = find_operator("L2Normalize")->create();
  for (const auto& [name, value] : {std::pair<std::string_view, AttributeValue>{"axes", *axes},
                                    {"epsilon", static_cast<float>(epsilon)},
                                    {"epsilon_mode", std::string(form.epsilon_mode)}}) {
    if (const Status status = op->set(name, value); !status.ok()) return Fusion(status.message());
  }
  return op;
}

void fuse_l2_normalize(Rewriter& rewriter) {
  for (onnx::Graph* graph : rewriter.graphs()) {
    for (const Lookalike& lookalike : lookalikes()) {
      for (const onnx::Match& match : find_matches(lookalike.pattern, *graph).matches) {
        rewriter.near_miss(lookalike.pattern.name(), match, std::string(lookalike.reason));
      }
    }
    for (const Form& form : forms()) {
      fuse(rewriter, *graph, form.pattern, form.why, [&](const onnx::Match& match) { return read(form, match); });
    }
  }
}

}  // namespace

extern const OperatorFusion l2_normalize_fusion{
    .pass = {"fuse_l2_normalize",
             "matches the larger patterns first, so that no smaller pattern matches a part of them", fuse_l2_normalize},
    .after = "fuse_spatial_pyramid_pooling"};

}  // namespace graft::passes

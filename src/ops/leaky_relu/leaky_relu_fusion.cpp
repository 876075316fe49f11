// Pass fuse_leaky_relu: a leaky ReLU written with comparisons, maxima or clips becomes LeakyReLU(x). For example
//   Where(Greater(x, 0), x, Mul(x, alpha))  becomes  LeakyReLU(x, alpha)
//   Max(x, Mul(x, alpha))                   becomes  LeakyReLU(x, alpha), for 0 < alpha <= 1
//
// This pass does not change ONNX's own LeakyRelu; the pass choose_plugins decides whether it stays.
#include <fmt/format.h>

#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "graft/operator/registry.hpp"
#include "onnx/matcher.hpp"
#include "passes/fuse.hpp"
#include "passes/operator_fusion.hpp"

namespace graft::passes {
namespace {

/// The values of alpha for which a formula computes a leaky ReLU.
enum class Alpha {
  any,
  at_most_one,   ///< The form Max(x, alpha x) requires 0 < alpha <= 1.
  at_least_one,  ///< The form Min(x, alpha x) requires alpha >= 1.
};

struct Form {
  std::string_view why;
  Alpha alpha;
  bool negated;  ///< The constant is -alpha.
  onnx::Pattern pattern;
};

const std::vector<Form>& forms() {
  static const std::vector<Form> all = [] {
    std::vector<Form> result;
    const auto add = [&](std::string_view name, std::string_view why, Alpha alpha, bool negated, const char* text) {
      result.push_back({why, alpha, negated, onnx::Pattern(text, fmt::format("LeakyReLU, {}", name))});
    };
    add("where", "x where x > 0, alpha * x elsewhere", Alpha::any, false, R"(
      positive = Greater(x, 0) | GreaterOrEqual(x, 0) | Less(0, x) | LessOrEqual(0, x) | Not(Less(x, 0)) | Not(Greater(0, x))
      y = Where(positive, x, Mul(x, @alpha))
    )");
    add("where, negative first", "alpha * x where x < 0, x elsewhere", Alpha::any, false, R"(
      negative = Less(x, 0) | LessOrEqual(x, 0) | Greater(0, x) | GreaterOrEqual(0, x) | Not(Greater(x, 0)) | Not(Less(0, x))
      y = Where(negative, Mul(x, @alpha), x)
    )");
    add("masks", "x * (x > 0) + alpha * x * (x <= 0), as tf2onnx writes tf.where; the same for every finite x",
        Alpha::any, false, R"(
      above = Greater(x, 0)
      y = Add(Mul(x, Cast(above)), Mul(Mul(x, @alpha), Cast(Not(above))))
    )");
    add("maximum", "max(x, alpha * x) with alpha at most 1", Alpha::at_most_one, false, "y = Max(x, Mul(x, @alpha))");
    add("minimum", "min(x, alpha * x) with alpha at least 1", Alpha::at_least_one, false, "y = Min(x, Mul(x, @alpha))");
    add("clips", "max(x, 0) + alpha * min(x, 0)", Alpha::any, false, R"(
      minus = Neg(x) | Mul(x, -1)
      above = Relu(x) | Max(x, 0) | Clip(x, 0, @ceiling?)
      below = Min(x, 0) | Clip(x, @floor?, 0) | Neg(Relu(minus))
      y = Add(above, Mul(below, @alpha))
    )");
    add("two Relu", "relu(x) - alpha * relu(-x)", Alpha::any, false, R"(
      minus = Neg(x) | Mul(x, -1)
      above = Relu(x) | Max(x, 0) | Clip(x, 0, @ceiling?)
      y = Sub(above, Mul(Relu(minus), @alpha))
    )");
    add("two Relu, added", "relu(x) + (-alpha) * relu(-x)", Alpha::any, true, R"(
      minus = Neg(x) | Mul(x, -1)
      above = Relu(x) | Max(x, 0) | Clip(x, 0, @ceiling?)
      y = Add(above, Mul(Relu(minus), @alpha))
    )");
    add("PRelu", "PRelu with one slope", Alpha::any, false, "y = PRelu(x, @alpha)");
    return result;
  }();
  return all;
}

Fusion read(const Form& form, const onnx::Match& match) {
  if (std::string obstacle = obstacle_of_x(match, "LeakyReLU"); !obstacle.empty()) return obstacle;
  // In old opsets, the unused bound of Clip has a default value that limits nothing.
  if (match.has("ceiling") && !(match.scalar("ceiling").value_or(0) >= std::numeric_limits<float>::max())) {
    return Fusion("the Clip of the positive part also has an upper limit");
  }
  if (match.has("floor") && !(match.scalar("floor").value_or(0) <= std::numeric_limits<float>::lowest())) {
    return Fusion("the Clip of the negative part also has a lower limit");
  }
  const auto number = match.scalar("alpha");
  if (!number) {
    return Fusion(fmt::format("alpha has {} values; LeakyReLU supports one",
                              match.constants.find("alpha")->second.element_count()));
  }
  const double alpha = form.negated ? -*number : *number;
  if (!std::isfinite(alpha)) return Fusion(fmt::format("alpha is {}; it must be finite", alpha));
  if (form.negated && alpha < 0)
    return Fusion(fmt::format("alpha is {}, so the result is positive on both sides; alpha must be at least 0", alpha));
  if (form.alpha == Alpha::at_most_one && !(alpha > 0 && alpha <= 1)) {
    return Fusion(fmt::format("alpha is {}; the maximum of x and alpha * x is a leaky ReLU for 0 < alpha <= 1", alpha));
  }
  if (form.alpha == Alpha::at_least_one && !(alpha >= 1)) {
    return Fusion(fmt::format("alpha is {}; the minimum of x and alpha * x is a leaky ReLU for alpha >= 1", alpha));
  }
  std::shared_ptr<Operator> op = find_operator("LeakyReLU")->create();
  if (const Status status = op->set("alpha", static_cast<float>(alpha)); !status.ok()) {
    return Fusion(status.message());
  }
  return op;
}

void fuse_leaky_relu(Rewriter& rewriter) {
  for (onnx::Graph* graph : rewriter.graphs()) {
    for (const Form& form : forms()) {
      fuse(rewriter, *graph, form.pattern, form.why, [&](const onnx::Match& match) { return read(form, match); });
    }
  }
}

}  // namespace

extern const OperatorFusion leaky_relu_fusion{
    .pass = {"fuse_leaky_relu", "a leaky ReLU that consists of several nodes would run in several kernels",
             fuse_leaky_relu},
    .after = "fuse_normalize"};

}  // namespace graft::passes

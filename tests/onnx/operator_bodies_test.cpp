// Tests how the possible function bodies of an operator are enumerated.
#include "onnx/operator_bodies.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <tuple>

#include "graft/operator/define_operator.hpp"

namespace graft {
namespace {

/// An operator with four or six attributes of four values each, and a function for every combination.
template <int Count>
struct Choices {
  static constexpr auto name = "Choices";
  static constexpr int version = 1;
  static constexpr auto doc = "a test";
  static constexpr auto source = "a test";
  static constexpr auto why_plugin = "a test";
  static inline int asked = 0;

  std::int64_t a = 0;
  std::int64_t b = 0;
  std::int64_t c = 0;
  std::int64_t d = 0;
  std::int64_t e = 0;
  std::int64_t f = 0;

  static constexpr auto attributes() {
    constexpr Range four{.lowest = 0, .highest = 3};
    const auto first = std::tuple{attribute("a", &Choices::a, "", four), attribute("b", &Choices::b, "", four),
                                  attribute("c", &Choices::c, "", four), attribute("d", &Choices::d, "", four)};
    if constexpr (Count == 4) {
      return first;
    } else {
      return std::tuple_cat(first,
                            std::tuple{attribute("e", &Choices::e, "", four), attribute("f", &Choices::f, "", four)});
    }
  }
  static constexpr auto ports() { return std::array{input("x", "T", "any", ""), output("y", "T", "as x", "")}; }
  static constexpr auto types() { return std::array{TypeConstraint("T", DType::f32)}; }
  static std::vector<Shape> infer_shapes(std::span<const Shape> inputs) { return {inputs[0]}; }
  [[nodiscard]] std::optional<Function> function(const FunctionInputs& /*inputs*/) const {
    ++asked;
    return Function{fmt::format("Choices{}{}{}{}{}{}", a, b, c, d, e, f), "y = Relu(x)"};
  }
};
template <int Count>
Status run(const Choices<Count>& /*op*/, const Problem& /*problem*/, const Buffers& /*buffers*/,
           const CpuContext& /*context*/) {
  return {};
}

TEST(OperatorBodies, AreOfAllCombinationsUpToABound) {
  EXPECT_EQ(onnx::function_bodies(operator_type<Choices<4>>()).size(), 4U * 4 * 4 * 4);
}

TEST(OperatorBodies, BeyondItAreOfEachValueBesideTheDefaults) {
  const auto bodies = onnx::function_bodies(operator_type<Choices<6>>());
  EXPECT_EQ(bodies.size(), 1U + 6 * 3);
  EXPECT_TRUE(bodies.contains("Choices000000"));
  EXPECT_TRUE(bodies.contains("Choices000003"));
  EXPECT_FALSE(bodies.contains("Choices000011"));
}

TEST(OperatorBodies, AreAskedForOnce) {
  Choices<4>::asked = 0;
  onnx::check_bodies(operator_type<Choices<4>>());
  EXPECT_EQ(Choices<4>::asked, 4 * 4 * 4 * 4 * 2) << "each combination, with a rank and without";
}

}  // namespace
}  // namespace graft

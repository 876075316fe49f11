// Tests an operator with a variadic input: its ports in the framework, and the tensors that its kernels get.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "fast_normalized_fusion/fast_normalized_fusion.hpp"

namespace graft {
namespace {

using my::FastNormalizedFusion;
using testing::HasSubstr;

const OperatorType& type() { return operator_type<FastNormalizedFusion>(); }

TEST(VariadicInputs, StandForOneTensorOrMore) {
  EXPECT_EQ(type().input_count(), 2U);
  EXPECT_EQ(type().required_input_count(), 2U);
  EXPECT_EQ(type().most_inputs(), 31U);
  EXPECT_EQ(type().input_count_text(), "2 to 31");
  EXPECT_EQ(type().input_name(0), "w");
  EXPECT_EQ(type().input_name(1), "x_1");
  EXPECT_EQ(type().input_name(12), "x_12");
}

TEST(VariadicInputs, AreOnePortHoweverManyThereAre) {
  for (const std::size_t given : {2U, 5U, 31U}) {
    EXPECT_EQ(type().port_of(given, 0), 0U);
    for (std::size_t i = 1; i < given; ++i) EXPECT_EQ(type().port_of(given, i), 1U);
    EXPECT_EQ(type().port_of(given, given), 2U);
  }
}

TEST(VariadicInputs, HaveOneType) {
  for (const std::size_t given : {2U, 4U, 31U}) {
    EXPECT_EQ(type().output_dtypes(std::vector(given, DType::bf16)), std::vector{DType::bf16});
  }
  EXPECT_EQ(type().output_dtypes(std::vector{DType::f16, DType::f16, DType::f32}), std::nullopt);
  EXPECT_EQ(type().output_dtypes(std::vector(32, DType::f32)), std::nullopt);
  EXPECT_EQ(type().output_dtypes(std::vector{DType::f32}), std::nullopt);
}

/// f32 tensors in linear layout.
struct Tensors {
  explicit Tensors(const std::vector<std::vector<float>>& values) : data(values), result(data.back().size()) {
    for (const std::vector<float>& each : data) {
      inputs.push_back({.extents = {std::ssize(each)}});
      addresses.push_back(each.data());
    }
    outputs.push_back({.extents = {std::ssize(result)}});
    written.push_back(result.data());
  }
  Status run(const Operator& op) { return op.run_cpu({inputs, outputs}, {addresses, written, nullptr}, {}); }

  std::vector<std::vector<float>> data;
  std::vector<float> result;
  std::vector<TensorDesc> inputs;
  std::vector<TensorDesc> outputs;
  std::vector<const void*> addresses;
  std::vector<void*> written;
};

TEST(VariadicInputs, ReachTheKernel) {
  const auto op = type().create();
  ASSERT_TRUE(op->set("epsilon", 1.F).ok());
  Tensors two({{1, 2}, {4, 8}, {-2, 6}});
  ASSERT_TRUE(two.run(*op).ok());
  EXPECT_THAT(two.result, testing::ElementsAre(0.F, 5.F));
  Tensors with_negative_weight({{1, -9, 2}, {4, 8}, {1, 1}, {-2, 6}});
  ASSERT_TRUE(with_negative_weight.run(*op).ok());
  EXPECT_THAT(with_negative_weight.result, testing::ElementsAre(0.F, 5.F));
}

/// The mean of 30 tensors with the sum 465 is 15.5; a tensor that is omitted or read twice changes it.
TEST(VariadicInputs, MayFillANode) {
  const auto op = type().create();
  ASSERT_TRUE(op->set("epsilon", 2.F).ok());
  std::vector<std::vector<float>> values{std::vector<float>(30, 1.F)};
  for (int i = 1; i <= 30; ++i) values.push_back({static_cast<float>(i)});
  Tensors most(values);
  ASSERT_TRUE(most.run(*op).ok());
  EXPECT_NEAR(most.result[0], 465.F / 32, 1e-5);
}

TEST(VariadicInputs, OfAnotherCountAreRefused) {
  const auto op = type().create();
  std::vector<Shape> outputs;
  EXPECT_TRUE(op->infer_shapes(std::vector<Shape>{{4}, {2, 3}, {2, 3}, {2, 3}, {2, 3}}, outputs).ok());
  EXPECT_EQ(outputs, (std::vector<Shape>{{2, 3}}));
  const Status none = op->infer_shapes(std::vector<Shape>{{0}}, outputs);
  EXPECT_THAT(none.message(), HasSubstr("takes 2 to 31 inputs, found 1"));
  const Status many = op->infer_shapes(std::vector<Shape>(32, Shape{31}), outputs);
  EXPECT_THAT(many.message(), HasSubstr("takes 2 to 31 inputs, found 32"));
  EXPECT_THAT(Tensors({{1, 2}}).run(*op).message(), HasSubstr("takes 2 to 31 inputs and 1 outputs, found 1 and 1"));
}

TEST(VariadicInputs, OfMixedTypesAreRefused) {
  const auto op = type().create();
  Tensors mixed({{1, 2}, {4, 8}, {-2, 6}});
  mixed.inputs[2].dtype = DType::f16;
  EXPECT_EQ(mixed.run(*op).code(), StatusCode::unsupported);
  EXPECT_THAT(mixed.run(*op).message(), HasSubstr("does not take f32 2, f32 2, f16 2, f32 2"));
}

struct With {
  static constexpr std::array all{TypeConstraint("T", DType::f32), TypeConstraint("Q", DType::f16, DType::i8)};
  static constexpr auto types() { return all; }
  static constexpr auto attributes() { return std::tuple{}; }
};
struct Last : With {
  static constexpr auto ports() { return std::array{input("w", "T", "", ""), variadic_input("x", "T", "", "")}; }
};
struct BesideOptional : With {
  static constexpr auto ports() {
    return std::array{input("w", "T", "", ""), optional_input("b", "T", "", ""), variadic_input("x", "T", "", "")};
  }
};
struct Two : With {
  static constexpr auto ports() {
    return std::array{variadic_input("x", "T", "", ""), variadic_input("z", "T", "", "")};
  }
};
struct First : With {
  static constexpr auto ports() { return std::array{variadic_input("x", "T", "", ""), input("w", "T", "", "")}; }
};
struct OfInt8 : With {
  static constexpr auto ports() { return std::array{input("w", "T", "", ""), variadic_input("x", "Q", "", "")}; }
};
struct OfFixedInt8 : With {
  static constexpr auto ports() { return std::array{variadic_input("x", DType::i8, "", "")}; }
};

TEST(VariadicInputs, AreTheLastAndHaveNoScales) {
  EXPECT_TRUE(detail::has_ports_in_order<Last>());
  EXPECT_FALSE(detail::has_ports_in_order<BesideOptional>());
  EXPECT_FALSE(detail::has_ports_in_order<Two>());
  EXPECT_FALSE(detail::has_ports_in_order<First>());
  EXPECT_TRUE(detail::has_scales_of_ports<Last>());
  EXPECT_FALSE(detail::has_scales_of_ports<OfInt8>());
  EXPECT_FALSE(detail::has_scales_of_ports<OfFixedInt8>());
}

TEST(VariadicInputs, HaveAFunctionForEachCount) {
  const auto op = type().create();
  std::optional<Function> two;
  std::optional<Function> three;
  ASSERT_TRUE(op->function({.count = 3}, two).ok());
  ASSERT_TRUE(op->function({.count = 4}, three).ok());
  ASSERT_TRUE(two && three);
  EXPECT_EQ(two->name, "FastNormalizedFusion_2");
  EXPECT_EQ(three->name, "FastNormalizedFusion_3");
  EXPECT_THAT(two->body, testing::Not(HasSubstr("x_3")));
  EXPECT_THAT(three->body, HasSubstr("Cast<to=1>(x_3)"));
}

}  // namespace
}  // namespace graft

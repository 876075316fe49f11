// Tests an operator with a shape input: shape inference gets its values, and kernels do not get it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "affine_sampling/affine_sampling.hpp"

namespace graft {
namespace {

using my::AffineSampling;
using testing::HasSubstr;

const OperatorType& type() { return operator_type<AffineSampling>(); }

TEST(ShapeInputs, AreInputsOfANodeAndNoneOfAKernel) {
  EXPECT_EQ(type().input_count(), 2U);
  EXPECT_EQ(type().most_inputs(), 2U);
  EXPECT_EQ(type().shape_input_count(), 1U);
  EXPECT_EQ(type().input_name(1), "size");
  EXPECT_EQ(type().port_of(1, 1), 2U) << "of a kernel's tensors";
  EXPECT_EQ(type().port_of(2, 1), 1U) << "of a node's";
  EXPECT_EQ(type().output_dtypes(std::vector{DType::f16}), std::vector{DType::f16});
  EXPECT_EQ(type().output_dtypes(std::vector{DType::f16, DType::i64}), std::vector{DType::f16});
  EXPECT_EQ(type().output_dtypes(std::vector{DType::f16, DType::i32}), std::nullopt);
  EXPECT_EQ(type().output_dtypes({}), std::nullopt);
}

TEST(ShapeInputs, MakeShapes) {
  const auto op = type().create();
  const Dim n = Dim::symbol("n");
  const Dim h = Dim::symbol("h");
  std::vector<Shape> outputs;
  ASSERT_TRUE(op->infer_shapes(std::vector<Shape>{{n, 2, 3}, {n, 3, h * 2, 7}}, outputs).ok());
  EXPECT_EQ(outputs, (std::vector<Shape>{{n, h * 2, 7, 2}}));
  ASSERT_TRUE(op->infer_shapes(std::vector<Shape>{{4, 3, 4}, {4, 1, 5, 6, 7}}, outputs).ok());
  EXPECT_EQ(outputs, (std::vector<Shape>{{4, 5, 6, 7, 3}}));
  EXPECT_THAT(op->infer_shapes(std::vector<Shape>{{4, 2, 3}, {4, 1, 5}}, outputs).message(), HasSubstr("3 values"));
  EXPECT_THAT(op->infer_shapes(std::vector<Shape>{{4, 2, 3}}, outputs).message(), HasSubstr("takes 2 inputs, found 1"));

  std::vector<Extents> extents;
  const TensorDesc theta{.extents = {2, 2, 3}};
  const Extents size{2, 3, 5, 7};
  ASSERT_TRUE(infer_extents(*op, {&theta, 1}, extents, {&size, 1}).ok());
  EXPECT_EQ(extents, (std::vector<Extents>{{2, 5, 7, 2}}));
}

/// The expected values were computed by ONNX Runtime's AffineGrid from [[1, 2, 3], [4, 5, 6]] and a size of 1,1,2,2,
/// for both values of align_corners.
TEST(ShapeInputs, AreKnownToKernelsByTheOutput) {
  const std::vector<float> theta{1, 2, 3, 4, 5, 6};
  std::vector<float> grid(8);
  const TensorDesc in{.extents = {1, 2, 3}};
  const TensorDesc out{.extents = {1, 2, 2, 2}};
  const void* input = theta.data();
  void* output = grid.data();
  const auto op = type().create();
  ASSERT_TRUE(op->run_cpu({{&in, 1}, {&out, 1}}, {{&input, 1}, {&output, 1}, nullptr}, {}).ok());
  EXPECT_THAT(grid, testing::ElementsAre(1.5F, 1.5F, 2.5F, 5.5F, 3.5F, 6.5F, 4.5F, 10.5F));
  ASSERT_TRUE(op->set("align_corners", std::int64_t{1}).ok());
  ASSERT_TRUE(op->run_cpu({{&in, 1}, {&out, 1}}, {{&input, 1}, {&output, 1}, nullptr}, {}).ok());
  EXPECT_THAT(grid, testing::ElementsAre(0.F, -3.F, 2.F, 5.F, 4.F, 7.F, 6.F, 15.F));
}

TEST(ShapeInputs, AreCheckedByTheOutput) {
  const auto op = type().create();
  const std::array in{TensorDesc{.extents = {1, 2, 3}}, TensorDesc{.dtype = DType::i64, .extents = {4}}};
  const TensorDesc good{.extents = {1, 5, 7, 2}};
  const TensorDesc bad{.extents = {2, 5, 7, 2}};
  EXPECT_TRUE(op->check({std::span(in).first(1), {&good, 1}}).ok());
  EXPECT_THAT(op->check({std::span(in).first(1), {&bad, 1}}).message(), HasSubstr("`grid` 2x5x7x2"));
  EXPECT_THAT(op->check({in, {&good, 1}}).message(), HasSubstr("found 3"));
}

struct Types {
  static constexpr auto types() { return std::array{TypeConstraint("T", DType::f32)}; }
};
struct Last : Types {
  static constexpr auto ports() {
    return std::array{input("x", "T", "", ""), shape_input("a", "", ""), shape_input("b", "", "")};
  }
};
struct AfterOptional : Types {
  static constexpr auto ports() {
    return std::array{input("x", "T", "", ""), optional_input("o", "T", "", ""), shape_input("s", "", "")};
  }
};
struct AfterVariadic : Types {
  static constexpr auto ports() { return std::array{variadic_input("x", "T", "", ""), shape_input("s", "", "")}; }
};
struct First : Types {
  static constexpr auto ports() { return std::array{shape_input("s", "", ""), input("x", "T", "", "")}; }
};

TEST(ShapeInputs, AreTheLastInputs) {
  EXPECT_TRUE(detail::has_ports_in_order<Last>());
  EXPECT_FALSE(detail::has_ports_in_order<AfterOptional>());
  EXPECT_FALSE(detail::has_ports_in_order<AfterVariadic>());
  EXPECT_FALSE(detail::has_ports_in_order<First>());
}

}  // namespace
}  // namespace graft

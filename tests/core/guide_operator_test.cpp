// The operator of the guide "add an operator": what its definition says reaches the framework.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "snake/snake.hpp"

namespace {

TEST(GuideOperator, HasAFunctionInEveryType) {
  const std::unique_ptr<graft::Operator> op = graft::operator_type<my::Snake>().create();
  const auto function = op->function({});
  ASSERT_TRUE(function.has_value());
  EXPECT_EQ(function->name, "Snake");
  EXPECT_THAT(function->body, testing::HasSubstr("sine = Sin(angle)"));
  const auto quantized = op->function({.dtype = graft::DType::i8});
  ASSERT_TRUE(quantized.has_value());
  EXPECT_EQ(quantized->name, "Snake_i8");
}

}  // namespace

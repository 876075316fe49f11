// The operator of the guide "add an operator": what its definition says reaches the framework.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "snake/snake.hpp"

namespace {

TEST(GuideOperator, HasAFunctionInEveryType) {
  const std::unique_ptr<graft::Operator> op = graft::operator_type<my::Snake>().create();
  std::optional<graft::Function> function;
  ASSERT_TRUE(op->function({}, function).ok());
  ASSERT_TRUE(function.has_value());
  EXPECT_EQ(function->name, "Snake");
  EXPECT_THAT(function->body, testing::HasSubstr("sine = Sin(angle)"));
  std::optional<graft::Function> quantized;
  ASSERT_TRUE(op->function({.dtype = graft::DType::i8}, quantized).ok());
  ASSERT_TRUE(quantized.has_value());
  EXPECT_EQ(quantized->name, "Snake_i8");
}

}  // namespace

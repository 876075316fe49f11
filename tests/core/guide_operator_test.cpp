// Tests the operator and the attributes of the guide "add an operator": all that a definition declares reaches the
// framework.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "attributes/resample_attributes.hpp"
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

TEST(GuideAttributes, AllowWhatTheGuideSays) {
  std::vector<graft::AttributeInfo> infos;
  std::apply([&](const auto&... each) { (infos.push_back(graft::detail::describe(each)), ...); },
             my::ResampleAttributes::attributes());
  const auto check = [&](std::string_view name, const graft::AttributeValue& value) {
    for (const graft::AttributeInfo& info : infos) {
      if (info.name == name) return graft::check_attribute(info, value).message();
    }
    return std::string("no such attribute");
  };
  constexpr float infinity = std::numeric_limits<float>::infinity();
  constexpr float nan = std::numeric_limits<float>::quiet_NaN();
  using Integers = std::vector<std::int64_t>;
  using Numbers = std::vector<float>;
  EXPECT_EQ(check("cutoff", 0.F) + check("cutoff", 1.F), "");
  EXPECT_THAT(check("cutoff", 1.5F), testing::HasSubstr("at least 0 and at most 1"));
  EXPECT_THAT(check("gain", 0.F), testing::HasSubstr("more than 0 and finite"));
  EXPECT_THAT(check("gain", infinity), testing::HasSubstr("more than 0 and finite"));
  EXPECT_EQ(check("offset", -infinity), "");
  EXPECT_THAT(check("offset", nan), testing::HasSubstr("it must not be NaN"));
  EXPECT_EQ(check("taps", std::int64_t{1}), "");
  EXPECT_THAT(check("taps", std::int64_t{0}), testing::HasSubstr("at least 1"));
  EXPECT_THAT(check("taps", 1.F), testing::HasSubstr("has type float; it must have type int"));
  EXPECT_THAT(check("align_corners", std::int64_t{2}), testing::HasSubstr("at least 0 and at most 1"));
  EXPECT_THAT(check("mode", std::string("cubic")), testing::HasSubstr("one of nearest, linear"));
  EXPECT_EQ(check("scales", Numbers{1, 2}) + check("axes", Integers{}), "");
  EXPECT_THAT(check("scales", Numbers{1, 0}), testing::HasSubstr("more than 0 and finite"));
  EXPECT_THAT(check("axes", Integers{0, -1}), testing::HasSubstr("at least 0"));
  EXPECT_TRUE(infos[6].required);
  EXPECT_FALSE(infos[7].required);
}

}  // namespace

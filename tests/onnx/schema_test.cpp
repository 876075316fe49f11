// The tables of ONNX's operators: what they hold, and that the hand-written one agrees with the generated one.
#include "onnx/schema.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/text_model.hpp"

namespace graft::onnx {
namespace {

TEST(Schema, IsFoundInTheOperatorSetsThatHaveIt) {
  EXPECT_NE(find_schema("Relu", 1), nullptr);
  EXPECT_EQ(find_schema("Swish", 23), nullptr);
  EXPECT_NE(find_schema("Swish", 24), nullptr);
  EXPECT_NE(find_schema("Upsample", 9), nullptr);
  EXPECT_EQ(find_schema("Upsample", 10), nullptr);
  EXPECT_NE(find_schema("Upsample"), nullptr);
  EXPECT_EQ(find_schema("Relux"), nullptr);
}

TEST(Schema, HoldsAttributesAndTheirDefaults) {
  const OperatorSchema* resize = find_schema("Resize");
  ASSERT_NE(resize, nullptr);
  EXPECT_EQ(resize->attribute_default("mode"), AttributeValue(std::string("nearest")));
  EXPECT_EQ(resize->attribute_default("cubic_coeff_a"), AttributeValue(-0.75F));
  EXPECT_EQ(resize->attribute_default("axes"), std::nullopt);
  EXPECT_EQ(resize->attribute_type("axes"), AttributeType::integers);
  EXPECT_FALSE(resize->has_attribute("scale"));
  EXPECT_EQ(find_schema("BatchNormalization")->attribute_default("epsilon"), AttributeValue(1e-5F));
  EXPECT_EQ(find_schema("TopK")->attribute_default("axis"), AttributeValue(std::int64_t{-1}));
  EXPECT_EQ(find_schema("MeanVarianceNormalization")->attribute_default("axes"),
            AttributeValue(std::vector<std::int64_t>{0, 2, 3}));
}

TEST(Schema, HoldsTheTypesOfPorts) {
  EXPECT_TRUE(find_schema("Concat")->has_low_precision_input(7));
  EXPECT_FALSE(find_schema("Gather")->has_low_precision_input(1));
  EXPECT_FALSE(find_schema("ArgMax")->has_low_precision_output(0));
  EXPECT_FALSE(find_schema("And")->has_low_precision());
}

// schema.cpp does not compile where an operator has no row of traits.
TEST(Traits, FitTheInputsOfTheOperators) {
  for (const OperatorSchema* schema : all_schemas()) {
    const Traits traits = traits_of(schema->name);
    SCOPED_TRACE(schema->name);
    if ((traits & (trait::broadcasting | trait::commutative | trait::weighted | trait::indexes_axis)) != 0) {
      EXPECT_GE(schema->most_inputs, 2U);
    }
    if ((traits & (trait::elementwise | trait::reduction)) != 0) {
      EXPECT_EQ(schema->fewest_inputs == 1 || schema->name == "CastLike", true);
    }
    if ((traits & trait::reduction) != 0) {
      EXPECT_TRUE(schema->has_attribute("keepdims"));
    }
    if ((traits & trait::indexes_axis) != 0) {
      EXPECT_TRUE(schema->has_attribute("axis"));
    }
  }
  EXPECT_EQ(traits_of("Relux"), 0U);
}

TEST(Traits, AreThoseOfTheStandardDomain) {
  Model model = test::text_model({{"x"}}, "a = Transpose(x)\ny = other::Transpose(a)", {"y"});
  const std::vector<Node*> nodes = model.graph().nodes();
  EXPECT_TRUE(has_trait(*nodes[0], trait::moves_data));
  EXPECT_FALSE(has_trait(*nodes[0], trait::view));
  EXPECT_FALSE(has_trait(*nodes[1], trait::moves_data));
  EXPECT_TRUE(is_any_of(*nodes[0], {"Relu", "Transpose"}));
  EXPECT_FALSE(is_any_of(*nodes[1], {"Relu", "Transpose"}));
}

}  // namespace
}  // namespace graft::onnx

// Tests the tables of ONNX's operators: their contents, and that the handwritten one agrees with the generated one.
#include "onnx/schema.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "onnx/schema_ports.hpp"
#include "onnx/schema_types.hpp"
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

TEST(Schema, HoldsEachOperatorSetsVersion) {
  const auto names = [](std::string_view op_type, std::int64_t opset) {
    std::string all;
    for (const AttributeSchema& attribute : find_schema_version(op_type, opset)->attributes()) {
      all += std::string(attribute.name) + (attribute.is_required ? "! " : " ");
    }
    return all;
  };
  EXPECT_EQ(names("Cast", 17), "to! ");
  EXPECT_EQ(names("Cast", 18), "to! ");
  EXPECT_EQ(names("Cast", 19), "saturate to! ");
  EXPECT_EQ(names("Cast", 28), "round_mode saturate to! ");
  EXPECT_EQ(names("Relu", 17), "");
  EXPECT_EQ(find_schema_version("ReduceMean", 17)->most_inputs, 1U);
  EXPECT_EQ(find_schema_version("ReduceMean", 18)->most_inputs, 2U);
  EXPECT_EQ(find_schema_version("Gelu", 19), std::nullopt);
  EXPECT_EQ(find_schema_version("Upsample", 17), std::nullopt);
}

// The expected attributes are those of onnx.defs.
TEST(Schema, WarnsOfAttributesThatAnOperatorDoesNotHave) {
  const auto warnings = [](const std::string& line, std::int64_t opset) {
    Model model = test::text_model({{"x"}}, line, {"y"});
    model.graph().opset_imports[""] = opset;
    return unknown_attribute_warnings(model);
  };
  EXPECT_THAT(warnings("y = Elu<alpha=0.5>(x)", 17), testing::IsEmpty());
  EXPECT_THAT(warnings("y = Elu<aplha=0.5>(x)", 17),
              testing::ElementsAre(testing::HasSubstr("17 has no attribute `aplha` for Elu (did you mean `alpha`?)")));
  EXPECT_THAT(warnings("y = ReduceMax<axes=[1]>(x)", 17), testing::IsEmpty());
  EXPECT_THAT(warnings("y = ReduceMax<axes=[1]>(x)", 18),
              testing::ElementsAre(testing::HasSubstr("operator set 18 has no attribute `axes` for ReduceMax")));
  EXPECT_THAT(warnings("y = Cast<to=1, saturate=1>(x)", 13),
              testing::ElementsAre(testing::HasSubstr("operator set 13 has no attribute `saturate` for Cast")));
  EXPECT_THAT(warnings("a = Elu<b=1.0>(x)\ny = Elu<b=1.0>(a)", 17),
              testing::ElementsAre(testing::HasSubstr("which 2 nodes have")));
  EXPECT_THAT(warnings("y = Elu<plugin_version=\"1\", own=1>(x)", 17), testing::IsEmpty());
}

TEST(Schema, SaysWhatIsWrongWithANode) {
  const auto fault = [](const std::string& line, std::int64_t opset = 17) {
    const Model model = test::text_model({{"x"}}, line, {"y"});
    return schema_fault(*model.graph().nodes().back(), opset).value_or("");
  };
  EXPECT_EQ(fault("y = Elu<alpha=0.5>(x)"), "");
  EXPECT_EQ(fault("y = Elu<aplha=0.5>(x)"),
            "Elu has no attribute `aplha` (did you mean `alpha`?); its attributes are alpha");
  EXPECT_EQ(fault("y = ReduceMax<axes=[1]>(x)"), "");
  EXPECT_EQ(fault("y = ReduceMax<axes=[1]>(x)", 18),
            "ReduceMax has no attribute `axes` in operator set 18; its attributes are keepdims, noop_with_empty_axes");
  EXPECT_EQ(fault("y = ReduceMax(x, x)"), "ReduceMax takes 1 input, but the node has 2");
  EXPECT_EQ(fault("y = ReduceMax(x, x)", 18), "");
  EXPECT_EQ(fault("y = Split<axis=0>(x, x)"), "");
  EXPECT_EQ(fault("y = Split<num_outputs=1>(x)"),
            "Split has no attribute `num_outputs` in operator set 17; its attributes are axis");
  EXPECT_EQ(fault("y = Split<num_outputs=1>(x)", 18), "");
  EXPECT_EQ(fault("y = Swish(x)", 23), "operator set 23 does not have Swish, which appears in operator set 24");
  EXPECT_EQ(fault("y = Constant<value=f16(1)>()"), "");
  EXPECT_EQ(fault("y = Constant<value_float=f16(1)>()"),
            "attribute `value_float` of Constant is a real number, such as 1.0; found a tensor, such as f16(1)");
}

TEST(SchemaTypes, AreThoseOfTheOperatorSet) {
  const auto takes = [](std::string_view op_type, std::int64_t opset, std::size_t input) {
    const SchemaTypes* types = find_schema_types(op_type, opset);
    if (types == nullptr) return std::string("none");
    const TypeSet* allowed = types->types_of(types->input_letter(input));
    return allowed == nullptr ? "any" : allowed->to_string();
  };
  EXPECT_EQ(takes("Celu", 27, 0), "f32");
  EXPECT_EQ(takes("Celu", 28, 0), "f32, f16, f64, bf16");
  EXPECT_EQ(takes("And", 17, 1), "bool");
  EXPECT_EQ(takes("Max", 17, 7), takes("Max", 17, 0)) << "the last letter counts for all that follow";
  EXPECT_EQ(takes("SequenceInsert", 17, 0), "no tensor");
  EXPECT_EQ(takes("Loop", 17, 2), "any");
  EXPECT_EQ(takes("Gelu", 19, 0), "none");
  EXPECT_EQ(takes("Upsample", 17, 0), "none");
  EXPECT_EQ(takes("Constant", 17, 0), "none");
  EXPECT_EQ(takes("Relux", 17, 0), "none");
  EXPECT_EQ(find_schema_types("ArgMax", 17)->output_letter(0), '.');
  EXPECT_FALSE(TypeSet({ElementType::f32}).contains(static_cast<ElementType>(33))) << "a code that is not in the list";
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

// Tests users' rules on small networks: their matches, their replacements, and the rewrites that the proof rejects.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "passes/pipeline.hpp"
#include "rules/rule.hpp"
#include "rules/rule_passes.hpp"
#include "runtime/default_engine.hpp"
#include "tests/passes/models.hpp"
#include "tests/support/text_model.hpp"

namespace graft::rules {
namespace {

using passes::ConvertOptions;
using passes::operators_in;
using report::RewriteReport;

using runtime::default_engine;
using test::inferred_text_model;
using test::op_types;
using test::weight;
using testing::ElementsAre;
using testing::HasSubstr;

const std::vector<test::TextInput> inputs{{"x", onnx::ElementType::f32, {1, 4, 6, 8}},
                                          weight("w", {4, 4, 3, 3}),
                                          {"low", onnx::TensorData::scalar_of(onnx::ElementType::f32, 0)},
                                          {"ones", onnx::TensorData::from_floats({1, 1, 1, 1})}};

/// Converts with no other pass than the rules.
RewriteReport convert_by(onnx::Model& model, const std::string& rules) {
  ConvertOptions options;
  options.extra_passes = rule_passes(parse_rules(rules, "rules.yaml")).passes;
  options.only = {"remove_dead"};
  return convert(runtime::default_engine(), model, options);
}

onnx::Model network(const std::string& nodes) { return inferred_text_model(inputs, nodes, {"y"}); }

TEST(UserRules, AttributesOfTheNativeEquivalentCarryOver) {
  onnx::Model leaky = network("y = LeakyRelu<alpha=0.3>(x)");
  convert_by(leaky, "- replace: {op: LeakyRelu}\n  with: LeakyReLU\n");
  ASSERT_EQ(operators_in(leaky).size(), 1U);
  EXPECT_EQ(operators_in(leaky)[0]->get("alpha"), AttributeValue(0.3F));

  onnx::Model norm = network("y = InstanceNormalization<epsilon=0.01>(x, ones, ones)");
  convert_by(norm, "- replace: {op: InstanceNormalization}\n  with: InstanceNorm\n");
  ASSERT_EQ(operators_in(norm).size(), 1U);
  EXPECT_EQ(operators_in(norm)[0]->get("epsilon"), AttributeValue(0.01F));
}

TEST(UserRules, AConvolutionTakesItsKernelFromItsWeight) {
  onnx::Model model = network("y = Conv<pads=[0, 1, 0, 1], strides=[2, 1]>(x, w)");
  convert_by(model, "- replace: {op: Conv}\n  with: Convolution\n");
  const auto found = operators_in(model);
  ASSERT_EQ(found.size(), 1U);
  const Operator& op = *found[0];
  EXPECT_EQ(op.get("kernel"), AttributeValue(std::vector<std::int64_t>{3, 3}));
  EXPECT_EQ(op.get("stride"), AttributeValue(std::vector<std::int64_t>{2, 1}));
  EXPECT_EQ(op.get("pad"), AttributeValue(std::vector<std::int64_t>{0, 1, 0, 1}));
}

TEST(UserRules, APaddingThatDependsOnTheInputHasToBeGiven) {
  const std::string nodes = "y = Conv<auto_pad=\"SAME_UPPER\">(x, w)";
  onnx::Model model = network(nodes);
  const std::string error = test::error_of([&] { convert_by(model, "- replace: {op: Conv}\n  with: Convolution\n"); });
  EXPECT_THAT(error, HasSubstr("`auto_pad` SAME_UPPER"));
  EXPECT_THAT(error, HasSubstr("set `pad`"));
  onnx::Model given = network(nodes);
  convert_by(given, "- replace: {op: Conv}\n  with: Convolution\n  attributes: {pad: [1, 1, 1, 1]}\n");
  EXPECT_EQ(operators_in(given).size(), 1U);
}

TEST(UserRules, Int8GivesTheWeightOneScaleForEachChannel) {
  onnx::Model model = network("y = Conv(x, w)");
  convert_by(model,
             "- replace: {op: Conv}\n  with: Convolution\n  int8: {x_scale: 0.05, y_scale: 0.1}\n"
             "  changes_result: true\n  reason: a test\n");
  const auto found = operators_in(model);
  ASSERT_EQ(found.size(), 1U);
  const Operator& op = *found[0];
  EXPECT_EQ(op.get("x_scale"), AttributeValue(0.05F));
  EXPECT_EQ(std::get<std::vector<float>>(*op.get("weight_scale")).size(), 4U);
  EXPECT_EQ(test::count_of(model, "QuantizeLinear"), 1U);
  EXPECT_EQ(test::count_of(model, "DequantizeLinear"), 1U);
}

TEST(UserRules, AWrongReplacementIsRejectedByItsProof) {
  onnx::Model model = network("y = LeakyRelu<alpha=0.3>(x)");
  const RewriteReport report =
      convert_by(model, "- replace: {op: LeakyRelu}\n  with: LeakyReLU\n  attributes: {alpha: 0.25}\n");
  EXPECT_TRUE(operators_in(model).empty());
  ASSERT_EQ(report.rejected.size(), 1U);
  EXPECT_THAT(report.rejected[0].proof, HasSubstr("elements differ"));
}

TEST(UserRules, WhatChangesNothingIsRemovedAndWhatChangesSomethingStays) {
  onnx::Model twice = network("r = Relu(x)\ny = Relu(r)");
  convert_by(twice, "- match: y = Relu(Relu(x))\n  with: Relu\n");
  EXPECT_THAT(op_types(twice.graph()), ElementsAre("Relu"));

  onnx::Model once = network("r = Relu(x)\ny = Sigmoid(r)");
  const RewriteReport report = convert_by(once, "- remove: {op: Relu}\n");
  EXPECT_THAT(op_types(once.graph()), ElementsAre("Relu", "Sigmoid"));
  EXPECT_EQ(report.rejected.size(), 1U);
}

TEST(UserRules, PlacesOfMistakesAreNamed) {
  const auto error = [](const std::string& rules) {
    return test::error_of([&] { (void)parse_rules(rules, "rules.yaml"); });
  };
  EXPECT_THAT(error("- replace: {op: Conv}\n  with: Convolutoin\n"), HasSubstr("rules.yaml:2"));
  EXPECT_THAT(error("- replace: {op: Conv}\n  with: Convolutoin\n"), HasSubstr("Convolution"));
  EXPECT_THAT(error("- replace: {op: Conv}\n  with: LeakyReLU\n  attributes: {slope: 1}\n"), HasSubstr("`slope`"));
  EXPECT_THAT(error("- repalce: {op: Conv}\n"), HasSubstr("did you mean replace?"));
}

}  // namespace
}  // namespace graft::rules

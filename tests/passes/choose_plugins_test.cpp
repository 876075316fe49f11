// Tests the choice between native layers, plugins and standard operators, and the resulting model.
#include <gtest/gtest.h>

#include "passes/pipeline.hpp"
#include "runtime/default_engine.hpp"
#include "tests/passes/models.hpp"

namespace graft::passes::choose_plugins_test {
namespace {

using runtime::default_engine;
using test::count_of;
using test::inferred_text_model;

/// A normalization, a decomposed leaky ReLU, and ONNX's LeakyRelu.
constexpr auto network = R"(
zero = Constant<value=float(0.0)>()
slope = Constant<value=float(0.1)>()
below = Min(x, zero)
above = Max(x, zero)
scaled = Mul(below, slope)
a = Add(above, scaled)
b = LeakyRelu<alpha=0.3>(a)
norm = ReduceL2<axes=[1], keepdims=1>(b)
epsilon = Constant<value=float(1e-12)>()
bounded = Max(norm, epsilon)
y = Div(b, bounded)
)";

onnx::Model make_network() {
  return inferred_text_model({{"x", onnx::ElementType::f32, image_shape()}}, network, {"y"});
}

RewriteReport convert_and_verify(onnx::Model& model, Plugins mode) {
  const onnx::Model original = model.clone();
  ConvertOptions options;
  options.plugins = mode;
  RewriteReport report = convert(runtime::default_engine(), model, options);
  EXPECT_TRUE(report.rejected.empty()) << report.rejected.front().proof;
  for (const runtime::OperatorKernels kernels : {runtime::OperatorKernels::functions, runtime::OperatorKernels::own}) {
    verify::VerifyOptions verify;
    verify.candidate_kernels = kernels;
    const verify::VerifyReport verified = verify::verify_models(runtime::default_engine(), original, model, verify);
    EXPECT_TRUE(verified.equal()) << first_difference(verified);
  }
  return report;
}

std::size_t count_of(const RewriteReport& report, OperatorChoice::Kind kind) {
  return static_cast<std::size_t>(std::count_if(report.choices.begin(), report.choices.end(),
                                                [&](const OperatorChoice& choice) { return choice.kind == kind; }));
}

bool has_standard_operators_only(const onnx::Model& model) {
  bool only = true;
  model.graph().for_each_node([&](const onnx::Node& node) { only = only && node.domain.empty(); });
  return only;
}

TEST(ChoosePlugins, AutomaticTakesAPluginOnlyWhereThereIsNoLayer) {
  onnx::Model model = make_network();
  const RewriteReport report = convert_and_verify(model, Plugins::automatic);
  EXPECT_EQ(count_of(model, "LeakyRelu"), 2U);
  ASSERT_EQ(operators_in(model).size(), 1U);
  EXPECT_EQ(operators_in(model)[0]->type().name, "L2Normalize");
  EXPECT_EQ(count_of(report, OperatorChoice::Kind::native), 2U);
  EXPECT_EQ(count_of(report, OperatorChoice::Kind::plugin), 1U);
  for (const OperatorChoice& choice : report.choices) EXPECT_FALSE(choice.reason.empty());
}

TEST(ChoosePlugins, AlwaysTakesPluginsForStandardOperatorsToo) {
  onnx::Model model = make_network();
  const RewriteReport report = convert_and_verify(model, Plugins::always);
  EXPECT_EQ(count_of(model, "LeakyRelu"), 0U);
  EXPECT_EQ(operators_in(model).size(), 3U);
  EXPECT_EQ(count_of(report, OperatorChoice::Kind::plugin), 3U);
}

TEST(ChoosePlugins, NeverLeavesStandardOperatorsOnly) {
  onnx::Model model = make_network();
  const RewriteReport report = convert_and_verify(model, Plugins::never);
  EXPECT_TRUE(has_standard_operators_only(model));
  EXPECT_TRUE(model.functions.empty());
  EXPECT_EQ(count_of(model, "LeakyRelu"), 2U);
  EXPECT_EQ(count_of(report, OperatorChoice::Kind::plugin), 0U);
}

TEST(ChoosePlugins, NeverTakesTheOperatorsOfAConvertedModelApart) {
  onnx::Model model = make_network();
  convert(runtime::default_engine(), model);
  ASSERT_EQ(operators_in(model).size(), 1U);
  const RewriteReport report = convert_and_verify(model, Plugins::never);
  EXPECT_TRUE(has_standard_operators_only(model));
  EXPECT_TRUE(model.functions.empty());
  EXPECT_EQ(count_of(report, OperatorChoice::Kind::function), 1U);
}

TEST(ChoosePlugins, EveryPluginCarriesItsFunction) {
  onnx::Model model = make_network();
  convert(runtime::default_engine(), model);
  bool found = false;
  model.graph().for_each_node([&](const onnx::Node& node) {
    if (node.domain != onnx_domain) return;
    found = true;
    EXPECT_NE(model.find_function(node), nullptr) << onnx::describe(node);
    EXPECT_EQ(node.string_or("epsilon_mode", ""), "norm");
    EXPECT_FLOAT_EQ(node.float_or("epsilon", 0), 1e-12F);
  });
  EXPECT_TRUE(found);
  EXPECT_GE(model.ir_version, 8);
}

TEST(ChoosePlugins, DropInsOfOtherLibrariesBecomeOperators) {
  onnx::Model model = inferred_text_model({{"x", onnx::ElementType::f32, image_shape()}}, "", {});
  onnx::Graph& graph = model.graph();
  graph.opset_imports["trt.plugins"] = 1;
  onnx::Node* node = graph.add_node("LReLU_TRT", {graph.find("x")}, {"y"}, nullptr, "trt.plugins");
  node->attributes["negSlope"] = onnx::NodeAttribute(onnx::AttributeData(0.25F));
  graph.add_output(*node->output());
  const RewriteReport report = convert(runtime::default_engine(), model);
  EXPECT_EQ(report.count("lower_drop_ins"), 1U);
  ASSERT_EQ(count_of(model, "LeakyRelu"), 1U);
  EXPECT_FLOAT_EQ(graph.nodes()[0]->float_or("alpha", 0), 0.25F);
}

}  // namespace
}  // namespace graft::passes::choose_plugins_test

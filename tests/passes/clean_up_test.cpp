// Tests the removal of dead code, constants and identities, in the main graph and in subgraphs.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "onnx/functions.hpp"
#include "passes/passes.hpp"
#include "passes/pipeline.hpp"
#include "passes/rewriter.hpp"
#include "runtime/default_engine.hpp"
#include "tests/passes/models.hpp"

namespace graft::passes::clean_up_test {
namespace {

using runtime::default_engine;
using test::count_of;
using test::inferred_text_model;
using test::op_types;
using test::TextInput;

using testing::ElementsAre;

const std::vector<TextInput> image = {{"x", onnx::ElementType::f32, image_shape()}};

TEST(RemoveDead, NodesThatNoOutputNeeds) {
  onnx::Model model = inferred_text_model(image, "y = Exp(x)\nlost = Log(x)\nlost_too = Abs(lost)\n", {"y"});
  const RewriteReport report = convert_and_verify(model);
  EXPECT_THAT(op_types(model.graph()), ElementsAre("Exp"));
  EXPECT_EQ(report.count("remove_dead"), 1U);
}

TEST(FoldConstants, Int64BeyondWhatADoubleHolds) {
  // f64 cannot represent 2^53 + 1, and i32 cannot represent 2^31.
  onnx::Model model = inferred_text_model({{"x", onnx::ElementType::i64, {3}}, {"a", onnx::ElementType::i64, {3}}},
                                          "b = Constant<value=int64([2, 2, 2])>()\n"
                                          "c = Mul(a, b)\n"
                                          "y = Max(x, c)\n",
                                          {"y"});
  onnx::Value& a = *model.graph().find("a");
  model.graph().set_is_input(a, false);
  model.graph().set_initializer(a, onnx::TensorData::from_ints({9007199254740993, 2147483648, -5}));
  const RewriteReport report = convert(runtime::default_engine(), model);
  EXPECT_THAT(op_types(model.graph()), ElementsAre("Max"));
  const auto folded = model.graph().nodes()[0]->input(1)->constant();
  ASSERT_TRUE(folded.has_value());
  EXPECT_EQ(folded->type, onnx::ElementType::i64);
  EXPECT_THAT(*folded->ints(), ElementsAre(18014398509481986, 4294967296, -10));
  EXPECT_TRUE(report.rejected.empty());
}

TEST(FoldConstants, KeepsNamesOfTensors) {
  onnx::Model model =
      inferred_text_model(image, "a = Constant<value=float(2.0)>()\nslope = Exp(a)\ny = Mul(x, slope)\n", {"y"});
  convert_and_verify(model);
  EXPECT_THAT(op_types(model.graph()), ElementsAre("Mul"));
  EXPECT_EQ(model.graph().nodes()[0]->input(1)->name, "slope");
  EXPECT_NEAR(*model.graph().find("slope")->constant()->scalar(), 7.38905609893, 1e-6);
}

TEST(FoldConstants, ShapeOfFixedDimensionsOnly) {
  onnx::Model model = inferred_text_model(image,
                                          "fixed = Shape<start=1>(x)\n"
                                          "open = Shape(x)\n"
                                          "sizes = Cast<to=float>(fixed)\n"
                                          "all = Cast<to=float>(open)\n"
                                          "a = ReduceSum<keepdims=0>(sizes)\n"
                                          "b = ReduceSum<keepdims=0>(all)\n"
                                          "c = Add(a, b)\n"
                                          "y = Add(x, c)\n",
                                          {"y"});
  convert_and_verify(model);
  EXPECT_EQ(count_of(model, "Shape"), 1U);
  EXPECT_EQ(count_of(model, "ReduceSum"), 1U);
  EXPECT_EQ(model.graph().find("a")->constant()->scalar(), 12.0);  // 4 + 3 + 5
}

// The model was exported for one image, and only its inputs were changed to dynamic sizes: declared shapes of internal
// values are outdated.
TEST(FoldConstants, ShapesAreNotTakenFromStaleDeclarations) {
  onnx::Model model = inferred_text_model({{"x", onnx::ElementType::f32, {Dim::symbol("N"), 8}}},
                                          "a = Exp(x)\ns = Shape(a)\nf = Cast<to=float>(s)\ny = Exp(f)\n", {"y"});
  model.graph().find("a")->shape = Shape{1, 8};
  convert_and_verify(model);
  EXPECT_EQ(count_of(model, "Shape"), 1U);

  // Only the declaration has this shape.
  onnx::Model custom =
      inferred_text_model({{"x", onnx::ElementType::f32, {Dim::symbol("N"), 8}}},
                          "a = custom::Op(x)\ns = Shape(a)\nf = Cast<to=float>(s)\ny = Exp(f)\n", {"y"});
  custom.graph().find("a")->type = onnx::ElementType::f32;
  custom.graph().find("a")->shape = Shape{1, 8};
  convert(runtime::default_engine(), custom);
  EXPECT_EQ(count_of(custom, "Shape"), 1U);
}

TEST(FoldConstants, LeavesRandomNumbersAndQuantizedWeights) {
  onnx::Model random = inferred_text_model(image,
                                           "shape = Constant<value=int64([3, 5])>()\n"
                                           "zeros = ConstantOfShape(shape)\n"
                                           "noise = RandomNormalLike<scale=0.0>(zeros)\n"
                                           "y = Add(x, noise)\n",
                                           {"y"});
  convert(runtime::default_engine(), random);
  EXPECT_EQ(count_of(random, "RandomNormalLike"), 1U);
  EXPECT_EQ(count_of(random, "ConstantOfShape"), 0U);

  onnx::Model quantized = inferred_text_model({{"x", onnx::ElementType::f32, {Dim::symbol("N"), 2}}},
                                              "numbers = Constant<value=int8([1, 2, 3, 4])>()\n"
                                              "square = Constant<value=int64([2, 2])>()\n"
                                              "stored = Reshape(numbers, square)\n"
                                              "scale = Constant<value=float(0.5)>()\n"
                                              "w = DequantizeLinear(stored, scale)\n"
                                              "y = MatMul(x, w)\n",
                                              {"y"});
  convert_and_verify(quantized);
  EXPECT_EQ(count_of(quantized, "DequantizeLinear"), 1U);
}

// TensorRT refuses DequantizeLinear of i32: "input has type Int32".
TEST(FoldConstants, BiasesOf32BitsBecomeReal) {
  onnx::Model model = inferred_text_model({{"x", onnx::ElementType::f32, {Dim::symbol("N"), 2}}},
                                          "stored = Constant<value=int32([-100, 7])>()\n"
                                          "scale = Constant<value=float([0.5, 2.0])>()\n"
                                          "b = DequantizeLinear<axis=0>(stored, scale)\n"
                                          "y = Add(x, b)\n",
                                          {"y"});
  convert_and_verify(model);
  EXPECT_EQ(count_of(model, "DequantizeLinear"), 0U);
  const auto constant = model.graph().nodes().front()->input(1)->constant();
  ASSERT_TRUE(constant);
  EXPECT_EQ(*constant->numbers(), (std::vector<double>{-50, 14}));
}

// The size of a Range is not known before its limit is.
TEST(FoldConstants, WhatBecomesKnownIsFoldedToo) {
  onnx::Model model =
      inferred_text_model(image,
                          "s = Shape<start=3>(x)\nn = Identity(s)\n"
                          "zero = Constant<value=int64(0)>()\none = Constant<value=int64(1)>()\n"
                          "five = Squeeze(n)\nr = Range(zero, five, one)\nf = Cast<to=float>(r)\ny = Add(x, f)\n",
                          {"y"});
  convert_and_verify(model);
  EXPECT_THAT(op_types(model.graph()), ElementsAre("Add"));
}

TEST(FoldConstants, AChainOfMany) {
  std::string nodes = "k = Constant<value=float([1.0, 2.0, 3.0])>()\nc0 = Exp(k)\n";
  std::string sum = "s0 = Add(x, c0)\n";
  constexpr int many = 300;
  for (int i = 1; i <= many; ++i) {
    nodes += fmt::format("c{} = Neg(c{})\n", i, i - 1);
    sum += fmt::format("s{} = Add(s{}, c{})\n", i, i - 1, i);
  }
  onnx::Model model =
      inferred_text_model({{"x", onnx::ElementType::f32, {3}}}, nodes + sum + fmt::format("y = Exp(s{})", many), {"y"});
  RewriteReport report;
  const ConvertOptions options;
  Rewriter rewriter(runtime::default_engine(), model, options, report);
  rewriter.begin("fold_constants");
  fold_constants(rewriter);
  EXPECT_EQ(count_of(model, "Neg"), 0U);
  EXPECT_NEAR(model.graph().find("c300")->constant()->numbers()->at(1), std::exp(2.0), 1e-5);
  std::size_t most = 0;
  for (const Rewrite& rewrite : report.rewrites) most = std::max(most, rewrite.nodes.size());
  EXPECT_LE(most, 40U) << "names in the report";
}

TEST(FoldConstants, OneThatIsRefusedDoesNotKeepTheOthers) {
  // The engine has no Det, which is lowered up to 4 x 4.
  onnx::Model model =
      inferred_text_model({{"x", onnx::ElementType::f32, {5, 5}}},
                          "k = Constant<value=float([1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, "
                          "19, 20, 21, 22, 23, 24, 25])>()\ns = Constant<value=int64([5, 5])>()\n"
                          "m = Reshape(k, s)\na = Neg(k)\nb = Reshape(a, s)\nd = Det(m)\ne = Exp(b)\nf = Abs(b)\n"
                          "t = Add(x, d)\nu = Add(t, e)\ny = Add(u, f)",
                          {"y"});
  convert(runtime::default_engine(), model);
  EXPECT_EQ(count_of(model, "Det"), 1U);
  EXPECT_EQ(count_of(model, "Exp") + count_of(model, "Abs") + count_of(model, "Neg"), 0U);
}

TEST(FoldConstants, NotWhereTheEngineLosesNaN) {
  for (const std::string op : {"Max", "Min", "Clip"}) {
    onnx::Model model = inferred_text_model({{"x", onnx::ElementType::f32, {2}}},
                                            "z = Constant<value=float([0.0, 4.0])>()\nn = Sqrt(z)\nd = Div(z, z)\n"
                                            "k = Constant<value=float(1.5)>()\na = " +
                                                op + "(d, k)\nb = " + op + "(n, k)\nt = Add(x, a)\ny = Add(t, b)",
                                            {"y"});
    convert(runtime::default_engine(), model);
    EXPECT_EQ(count_of(model, op), 1U) << "0 / 0 stays, the numbers are folded";
    EXPECT_EQ(count_of(model, "Sqrt"), 0U);
  }
}

TEST(FoldConstants, DoesNotBlowUpTheFile) {
  onnx::Model model = inferred_text_model({{"x", onnx::ElementType::f32, {1024, 1024}}},
                                          "shape = Constant<value=int64([1024, 1024])>()\n"
                                          "many = ConstantOfShape(shape)\n"
                                          "y = Add(x, many)\n",
                                          {"y"});
  convert(runtime::default_engine(), model);
  EXPECT_EQ(count_of(model, "ConstantOfShape"), 1U);
}

TEST(FoldConstants, LeavesWhatIsOfUnknownOrImpossibleSize) {
  onnx::Model unknown =
      inferred_text_model({{"x", onnx::ElementType::f32, {2}}},
                          "zero = Constant<value=float(0.0)>()\none = Constant<value=float(1.0)>()\n"
                          "thousand = Constant<value=float(1000.0)>()\nlimit = Mul(thousand, thousand)\n"
                          "many = Range(zero, limit, one)\nsum = ReduceSum<keepdims=0>(many)\ny = Add(x, sum)\n",
                          {"y"});
  convert(runtime::default_engine(), unknown);
  EXPECT_EQ(count_of(unknown, "Range"), 1U);

  // 64 bits can count 2^60 elements, but not their bits.
  onnx::Model impossible =
      inferred_text_model({{"x", onnx::ElementType::f32, {1}}},
                          "shape = Constant<value=int64([1152921504606846976])>()\n"
                          "many = ConstantOfShape(shape)\nsum = ReduceSum(many)\ny = Add(x, sum)\n",
                          {"y"});
  convert(runtime::default_engine(), impossible);
  EXPECT_EQ(count_of(impossible, "ConstantOfShape"), 1U);
}

TEST(RemoveIdentities, WhatCopiesItsInput) {
  onnx::Model model = inferred_text_model(image,
                                          "a = Exp(x)\n"
                                          "b = Identity(a)\n"
                                          "c, mask = Dropout(b)\n"
                                          "d = Cast<to=float>(c)\n"
                                          "one = Constant<value=float(1.0)>()\n"
                                          "e = Mul(one, d)\n"
                                          "f = Div(e, one)\n"
                                          "zero = Constant<value=float(0.0)>()\n"
                                          "g = Sub(f, zero)\n"
                                          "h = Transpose<perm=[0, 2, 3, 1]>(g)\n"
                                          "i = Transpose<perm=[0, 3, 1, 2]>(h)\n"
                                          "j = Transpose<perm=[0, 1, 2, 3]>(i)\n"
                                          "k = Concat<axis=1>(j)\n"
                                          "y = Log(k)\n",
                                          {"y"});
  const RewriteReport report = convert_and_verify(model);
  EXPECT_THAT(op_types(model.graph()), ElementsAre("Exp", "Log"));
  EXPECT_EQ(report.count("remove_identities"), 9U);
}

TEST(RemoveIdentities, NotWhatChangesAZerosSign) {
  // -0 + 0 is +0, so 1 / (x + 0) differs from 1 / x where x is -0. Adding -0 changes nothing.
  onnx::Model plus =
      inferred_text_model(image, "zero = Constant<value=float(0.0)>()\na = Add(x, zero)\ny = Reciprocal(a)\n", {"y"});
  convert(runtime::default_engine(), plus);
  EXPECT_EQ(count_of(plus, "Add"), 1U);

  onnx::Model minus =
      inferred_text_model(image, "zero = Constant<value=float(-0.0)>()\na = Add(x, zero)\ny = Reciprocal(a)\n", {"y"});
  convert(runtime::default_engine(), minus);
  EXPECT_EQ(count_of(minus, "Add"), 0U);
}

TEST(RemoveIdentities, NotWhatBroadcasts) {
  onnx::Model model =
      inferred_text_model({{"x", onnx::ElementType::f32, {Dim::symbol("N"), 4}}},
                          "numbers = Constant<value=float([1.0, 1.0])>()\nshape = Constant<value=int64([2, 1, 1])>()\n"
                          "ones = Reshape(numbers, shape)\na = Mul(x, ones)\ny = Exp(a)\n",
                          {"y"});
  convert_and_verify(model);
  EXPECT_EQ(count_of(model, "Mul"), 1U);
}

TEST(RemoveIdentities, ReshapeToTheShapeThatIsThere) {
  onnx::Model model = inferred_text_model(
      {{"x", onnx::ElementType::f32, {2, 8}}},
      "a = Exp(x)\nshape = Constant<value=int64([2, 8])>()\nb = Reshape(a, shape)\ny = Log(b)\n", {"y"});
  convert_and_verify(model);
  EXPECT_THAT(op_types(model.graph()), ElementsAre("Exp", "Log"));
}

TEST(RemoveIdentities, OutputsKeepTheirNames) {
  onnx::Model model = inferred_text_model(image, "a = Exp(x)\ny = Identity(a)\nz = Identity(x)\n", {"y", "z"});
  convert_and_verify(model);
  EXPECT_EQ(model.graph().outputs()[0]->name, "y");
  EXPECT_EQ(model.graph().outputs()[1]->name, "z");
  EXPECT_EQ(count_of(model, "Identity"), 1U);  // an input cannot be an output directly
}

/// A Transpose can move past every elementwise operator and every reduction, not only the common ones.
TEST(MoveTransposes, PassRareOperators) {
  for (const std::string node : {"Mish(t)", "Asinh(t)", "Celu(t)", "Mod<fmod=1>(t, c)",
                                 "ReduceL1<axes=[1], keepdims=1>(t)", "ReduceLogSumExp<axes=[1], keepdims=1>(t)"}) {
    SCOPED_TRACE(node);
    onnx::Model model = inferred_text_model(image,
                                            "a = Exp(x)\nc = Constant<value=float(2.5)>()\n"
                                            "t = Transpose<perm=[0, 2, 3, 1]>(a)\nr = " +
                                                node + "\ny = Transpose<perm=[0, 3, 1, 2]>(r)\n",
                                            {"y"});
    convert_and_verify(model);
    EXPECT_EQ(count_of(model, "Transpose"), 0U);
  }
}

TEST(MoveTransposes, TwoInARowBecomeOneAndTheNextNodePassesIt) {
  onnx::Model model = inferred_text_model(image,
                                          "a = Exp(x)\n"
                                          "t = Transpose<perm=[0, 2, 3, 1]>(a)\n"
                                          "u = Transpose<perm=[0, 2, 3, 1]>(t)\n"
                                          "r = Relu(u)\n"
                                          "v = Transpose<perm=[0, 2, 3, 1]>(r)\n"
                                          "w = Sigmoid(v)\n"
                                          "y = Log(w)\n",
                                          {"y"});
  convert_and_verify(model);
  EXPECT_THAT(op_types(model.graph()), ElementsAre("Exp", "Relu", "Sigmoid", "Log"));
}

TEST(SubGraphs, AreConvertedWithWhatTheySee) {
  onnx::Model model = inferred_text_model(
      {{"x", onnx::ElementType::f32, {2, 8}}, {"choice", onnx::ElementType::boolean, {}}}, "a = Exp(x)\n", {});
  onnx::Graph& main = model.graph();
  const auto branch = [&](const char* text) {
    auto graph = std::make_unique<onnx::Graph>(&main);
    graph->name = "branch";
    parse_nodes(*graph, text, {}, [](std::string_view) { return std::optional<AttributeType>{}; });
    graph->add_output(*graph->nodes().back()->output());
    return graph;
  };
  onnx::Node* node = main.add_node("If", {main.find("choice")}, {"y"});
  // The first branch is a leaky ReLU of an outer value; the second has a Dropout.
  node->attributes.emplace("then_branch", onnx::AttributeData(branch("zero = Constant<value=float(0.0)>()\n"
                                                                     "slope = Constant<value=float(0.1)>()\n"
                                                                     "positive = Greater(a, zero)\n"
                                                                     "scaled = Mul(a, slope)\n"
                                                                     "then_y = Where(positive, a, scaled)\n")));
  node->attributes.emplace("else_branch",
                           onnx::AttributeData(branch("e = Neg(a)\nd, mask = Dropout(e)\nelse_y = Abs(d)\n")));
  main.add_output(*main.find("y"));
  infer_shapes(model);
  const onnx::Model original = model.clone();
  const RewriteReport report = convert(runtime::default_engine(), model);
  model.graph().check();
  EXPECT_EQ(count_of(model, "LeakyRelu"), 1U);
  EXPECT_EQ(count_of(model, "Where"), 0U);
  EXPECT_EQ(count_of(model, "Dropout"), 0U);
  EXPECT_TRUE(report.rejected.empty()) << report.rejected.front().proof;
  const verify::VerifyReport verified = verify::verify_models(runtime::default_engine(), original, model);
  EXPECT_TRUE(verified.equal()) << first_difference(verified);
}

/// Returns y = Relu(If(condition) {then: b = Neg(a), plus a constant} {else: Squeeze(a)}) of a = Exp(x), as PyTorch
/// exports squeeze(0) of an unknown size.
onnx::Model squeeze_by_condition(std::int64_t rows, const char* condition) {
  onnx::Model model =
      inferred_text_model({{"x", onnx::ElementType::f32, {rows, 8}}}, fmt::format("a = Exp(x)\n{}", condition), {});
  onnx::Graph& main = model.graph();
  onnx::Node* node = main.add_node("If", {main.find("condition")}, {"chosen"});
  for (const auto& [attribute, text] :
       {std::pair{"then_branch", "axes = Constant<value_ints=[0]>()\nsqueezed = Squeeze(a, axes)\n"},
        std::pair{"else_branch", "two = Constant<value=float(2.0)>()\nscaled = Mul(a, two)\n"}}) {
    auto graph = std::make_unique<onnx::Graph>(&main);
    parse_nodes(*graph, text, {}, [](std::string_view) { return std::optional<AttributeType>{}; });
    graph->add_output(*graph->nodes().back()->output());
    node->attributes.emplace(attribute, onnx::AttributeData(std::move(graph)));
  }
  onnx::Node* last = main.add_node("Relu", {node->output()}, {"y"});
  main.add_output(*last->output());
  infer_shapes(model);
  return model;
}

/// A condition: whether there is one row.
const char* const of_the_shape =
    "shape = Shape(x)\nzero = Constant<value=int64(0)>()\none = Constant<value=int64(1)>()\n"
    "rows = Gather<axis=0>(shape, zero)\ncondition = Equal(rows, one)\n";

TEST(ConstantBranches, OfAShape) {
  onnx::Model model = squeeze_by_condition(1, of_the_shape);
  EXPECT_FALSE(model.graph().find("y")->shape.has_value());
  const RewriteReport report = convert_and_verify(model);
  EXPECT_THAT(op_types(model.graph()), ElementsAre("Exp", "Squeeze", "Relu"));
  EXPECT_EQ(model.graph().nodes()[2]->input(0)->name, "squeezed");
  ASSERT_TRUE(model.graph().find("y")->shape.has_value());
  EXPECT_EQ(*model.graph().find("y")->shape, (Shape{8}));
}

TEST(ConstantBranches, TheOtherBranchToo) {
  onnx::Model model = squeeze_by_condition(3, of_the_shape);
  convert_and_verify(model);
  EXPECT_THAT(op_types(model.graph()), ElementsAre("Exp", "Mul", "Relu"));
  EXPECT_EQ(*model.graph().find("y")->shape, (Shape{3, 8}));
}

TEST(ConstantBranches, NotWhereTheNumbersDecide) {
  onnx::Model model = squeeze_by_condition(
      1, "limit = Constant<value=float(0.5)>()\nsum = ReduceSum<keepdims=0>(a)\ncondition = Greater(sum, limit)\n");
  convert(runtime::default_engine(), model);
  model.graph().check();
  EXPECT_THAT(op_types(model.graph()), testing::Contains("If"));
}

}  // namespace
}  // namespace graft::passes::clean_up_test

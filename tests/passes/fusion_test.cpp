// Tests fusions that no exporter's file covers: newer forms of Resize, other modes, and nodes around an operator.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <string>

#include "passes/pipeline.hpp"
#include "runtime/default_engine.hpp"
#include "tests/passes/models.hpp"

namespace graft::passes::fusion_test {
namespace {

using runtime::default_engine;
using test::count_of;
using test::inferred_text_model;
using test::TextInput;

using testing::HasSubstr;

TextInput image() { return {"x", onnx::ElementType::f32, {Dim::symbol("N"), 4, 6, 8}}; }

struct Converted {
  onnx::Model model;
  RewriteReport report;
};

Converted converted(const std::string& nodes, Plugins plugins = Plugins::automatic, std::int64_t opset = 17,
                    const std::vector<TextInput>& inputs = {image()}) {
  Converted result{inferred_text_model(inputs, nodes, {"y"}, opset), {}};
  ConvertOptions options;
  options.plugins = plugins;
  result.report = convert_and_verify(result.model, options);
  return result;
}

AttributeValue only_attribute(const onnx::Model& model, std::string_view name) {
  const auto ops = operators_in(model);
  EXPECT_EQ(ops.size(), 1U);
  return ops.empty() ? AttributeValue() : ops[0]->get(name).value();
}

std::string text_of(const AttributeValue& value) {
  const auto* text = std::get_if<std::string>(&value);
  return text == nullptr ? "" : *text;
}

TEST(FuseUpsampling, AntialiasChangesNothingWhereNothingShrinks) {
  const auto found = converted(
      "s = Constant<value=float([1.0, 1.0, 2.0, 2.0])>()\n"
      "y = Resize<mode=\"linear\", antialias=1>(x, _, s)",
      Plugins::automatic, 18);
  EXPECT_EQ(text_of(only_attribute(found.model, "mode")), "linear");
  EXPECT_EQ(text_of(only_attribute(found.model, "coordinate_mode")), "half_pixel");
}

TEST(FuseUpsampling, AntialiasThatShrinksIsNoUpsampling) {
  const auto found = converted(
      "s = Constant<value=float([1.0, 1.0, 0.5, 2.0])>()\n"
      "y = Resize<mode=\"linear\", antialias=1>(x, _, s)",
      Plugins::automatic, 18);
  EXPECT_TRUE(operators_in(found.model).empty());
  EXPECT_EQ(count_of(found.model, "MatMul"), 2U);
}

TEST(FuseUpsampling, AntialiasThatShrinksAnOpenSizeStays) {
  const TextInput open{"x", onnx::ElementType::f32, {Dim::symbol("N"), 4, Dim::symbol("H"), 8}};
  const onnx::Model original = inferred_text_model({open},
                                                   "s = Constant<value=float([1.0, 1.0, 0.5, 2.0])>()\n"
                                                   "y = Resize<mode=\"linear\", antialias=1>(x, _, s)",
                                                   {"y"}, 18);
  onnx::Model model = original.clone();
  const RewriteReport report = convert(runtime::default_engine(), model);
  EXPECT_TRUE(operators_in(model).empty());
  EXPECT_EQ(count_of(model, "Resize"), 1U);
  ASSERT_EQ(report.near_misses.size(), 1U);
  EXPECT_THAT(report.near_misses[0].reason, HasSubstr("a size that it changes is dynamic"));
}

TEST(FuseUpsampling, TakesResizeWherePluginsAreAskedFor) {
  const std::string nodes =
      "s = Constant<value=float([1.0, 1.0, 2.0, 2.0])>()\n"
      "y = Resize<mode=\"linear\", coordinate_transformation_mode=\"align_corners\">(x, _, s)";
  EXPECT_TRUE(operators_in(converted(nodes).model).empty());
  const auto found = converted(nodes, Plugins::always);
  EXPECT_EQ(text_of(only_attribute(found.model, "coordinate_mode")), "align_corners");
}

TEST(FuseUpsampling, TakesSizes) {
  const auto found = converted(
      "n = Shape<start=0, end=2>(x)\n"
      "s = Constant<value=int64([2, 4, 9, 12])>()\n"
      "y = Resize<mode=\"linear\">(x, _, _, s)",
      Plugins::always, 17, {{"x", onnx::ElementType::f32, {2, 4, 6, 8}}});
  EXPECT_EQ(std::get<std::vector<std::int64_t>>(only_attribute(found.model, "sizes")),
            (std::vector<std::int64_t>{9, 12}));
}

TEST(FusePadding, TakesPadWherePluginsAreAskedFor) {
  const std::string nodes =
      "p = Constant<value=int64([0, 0, 1, 2, 0, 0, 3, 1])>()\n"
      "y = Pad<mode=\"reflect\">(x, p)";
  EXPECT_TRUE(operators_in(converted(nodes).model).empty());
  for (const TextInput& x : {TextInput{"x", onnx::ElementType::f32, {2, 4, 6, 8}}, image()}) {
    const auto found = converted(nodes, Plugins::always, 17, {x});
    EXPECT_EQ(text_of(only_attribute(found.model, "mode")), "reflect");
  }
}

TEST(FusePadding, JoinsAChainOfPads) {
  const auto found = converted(
      "p = Constant<value=int64([0, 0, 1, 0, 0, 0, 2, 0])>()\n"
      "q = Constant<value=int64([0, 0, 0, 3, 0, 0, 0, 0])>()\n"
      "v = Constant<value=1.5>()\n"
      "h = Pad(x, p, v)\n"
      "y = Pad(h, q, v)");
  EXPECT_TRUE(operators_in(found.model).empty());
  EXPECT_EQ(count_of(found.model, "Pad"), 1U);
}

// TopK keeps the twelve largest in their order, as a detector keeps its boxes. With twelve or fewer elements these are
// all of them, and the runs from which a movement is inferred have no more.
TEST(FusePadding, LeavesAGatherByTheElementsThemselves) {
  const auto found = converted(
      "s = Shape(x)\n"
      "most = Constant<value=int64([12])>()\n"
      "k = Min(s, most)\n"
      "v, i = TopK<axis=0>(x, k)\n"
      "p, q = TopK<axis=0, largest=0>(i, k)\n"
      "y = Gather<axis=0>(x, p)",
      Plugins::automatic, 17, {{"x", onnx::ElementType::f32, {Dim::symbol("N")}}});
  EXPECT_TRUE(operators_in(found.model).empty());
  EXPECT_EQ(count_of(found.model, "Gather"), 1U);
}

TEST(FuseInstanceNorm, TakesTheNodeItselfWherePluginsAreAskedFor) {
  const std::string nodes =
      "s = Constant<value=float([1.0, 2.0, 3.0, 4.0])>()\n"
      "b = Constant<value=float([0.0, 1.0, 0.0, 1.0])>()\n"
      "y = InstanceNormalization(x, s, b)";
  EXPECT_TRUE(operators_in(converted(nodes).model).empty());
  EXPECT_EQ(operators_in(converted(nodes, Plugins::always).model).size(), 1U);
}

TEST(FuseInstanceNorm, NoTranspositionsAreLeftRoundIt) {
  const auto found = converted(
      "t = Transpose<perm=[0, 2, 3, 1]>(c)\n"
      "m = ReduceMean<axes=[1, 2]>(t)\n"
      "d = Sub(t, m)\n"
      "q = Mul(d, d)\n"
      "v = ReduceMean<axes=[1, 2]>(q)\n"
      "e = Constant<value=1e-05>()\n"
      "ve = Add(v, e)\n"
      "s = Sqrt(ve)\n"
      "n = Div(d, s)\n"
      "r = Relu(n)\n"
      "u = Transpose<perm=[0, 3, 1, 2]>(r)\n"
      "y = Sigmoid(u)",
      Plugins::automatic, 17, {{"c", onnx::ElementType::f32, {Dim::symbol("N"), 4, 6, 8}}});
  EXPECT_EQ(found.model.graph().node_count(), 2U);
  EXPECT_EQ(text_of(only_attribute(found.model, "activation")), "relu");
}

TEST(FuseInstanceNorm, FoldsScaleAndBiasIntoTheNode) {
  const auto found = converted(
      "s = Constant<value=float([1.0, 2.0, 3.0, 4.0])>()\n"
      "b = Constant<value=float([0.0, 1.0, 0.0, 1.0])>()\n"
      "n = InstanceNormalization(x, s, b)\n"
      "k = Constant<value=2.0>()\n"
      "t = Mul(n, k)\n"
      "y = Sub(t, k)");
  ASSERT_EQ(operators_in(found.model).size(), 1U);
  EXPECT_EQ(found.report.count("fuse_instance_norm"), 1U);
}

/// Returns nodes that compute x / sqrt(sum(x^2) + 1e-10) over channels, times a constant.
std::string scaled_norm(const std::string& scale) {
  return "q = Mul(x, x)\n"
         "a = Constant<value=int64([1])>()\n"
         "s = ReduceSum(q, a)\n"
         "e = Constant<value=1e-10>()\n"
         "se = Add(s, e)\n"
         "r = Sqrt(se)\n"
         "n = Div(x, r)\n"
         "w = " +
         scale +
         "\n"
         "y = Mul(n, w)";
}

TEST(FuseNormalize, TakesAFactorForEachChannel) {
  const auto found = converted(
      "u = Constant<value=float([1.0, 2.0, 3.0, 4.0])>()\n"
      "b = Constant<value=int64([1, 4, 1, 1])>()\n" +
      scaled_norm("Reshape(u, b)"));
  EXPECT_EQ(std::get<std::int64_t>(only_attribute(found.model, "channel_shared")), 0);
  EXPECT_EQ(operators_in(found.model)[0]->type().name, "Normalize");
}

TEST(FuseNormalize, TakesOneFactorForAll) {
  const auto found = converted(scaled_norm("Constant<value=20.0>()"));
  EXPECT_EQ(std::get<std::int64_t>(only_attribute(found.model, "channel_shared")), 1);
}

TEST(FuseNormalize, LeavesAFactorForEachColumn) {
  const auto found = converted(scaled_norm("Constant<value=float([1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0])>()"));
  EXPECT_EQ(operators_in(found.model)[0]->type().name, "L2Normalize");
  ASSERT_EQ(found.report.near_misses.size(), 1U);
  EXPECT_THAT(found.report.near_misses[0].reason, HasSubstr("neither one value nor one for each channel"));
}

TEST(FuseNormalize, LeavesAnotherPlaceOfEpsilon) {
  const auto found = converted(
      "n = graft::L2Normalize<axes=[1], epsilon=1e-12, epsilon_mode=\"norm\">(x)\n"
      "w = Constant<value=20.0>()\n"
      "y = Mul(n, w)");
  EXPECT_EQ(operators_in(found.model)[0]->type().name, "L2Normalize");
  ASSERT_EQ(found.report.near_misses.size(), 1U);
  EXPECT_THAT(found.report.near_misses[0].reason, HasSubstr("epsilon_mode is norm"));
}

// ---- Pyramids whose windows were exported for a fixed size

/// Returns a spatial pyramid (He et al.) with windows for 14 x 14 features and a dynamic image size.
onnx::Model frozen_pyramid(const std::string& flatten) {
  const Dim any = onnx::unknown_dim();
  std::string nodes;
  for (const auto& [count, kernel, stride] : {std::array{4, 4, 3}, std::array{2, 7, 7}, std::array{1, 14, 14}}) {
    nodes += fmt::format("p{0} = MaxPool<kernel_shape=[{1}, {1}], strides=[{2}, {2}]>(x)\n", count, kernel, stride);
    nodes += fmt::format("l{0} = Constant<value=int64([-1, {1}])>()\n", count, 3 * count * count);
    nodes += fmt::format(fmt::runtime(flatten), count);
  }
  return inferred_text_model({{"x", onnx::ElementType::f32, {Dim::symbol("N"), 3, any, onnx::unknown_dim()}}},
                             nodes + "y = Concat<axis=1>(f4, f2, f1)", {"y"});
}

constexpr auto by_channels = "f{0} = Reshape(p{0}, l{0})\n";
constexpr auto by_cells = "t{0} = Transpose<perm=[0, 2, 3, 1]>(p{0})\nf{0} = Reshape(t{0}, l{0})\n";

/// Compares both models at a size for which the windows were exported.
void expect_same_at(const onnx::Model& original, const onnx::Model& found, std::int64_t size) {
  onnx::Model before = original.clone();
  onnx::Model after = found.clone();
  for (onnx::Model* model : {&before, &after}) infer_shapes(*model, {{"x", {2, 3, size, size}}});
  const verify::VerifyReport verified = verify::verify_models(runtime::default_engine(), before, after);
  EXPECT_TRUE(verified.equal()) << first_difference(verified);
}

TEST(FrozenPyramid, BecomesOneOfAnySize) {
  for (const char* flatten : {by_channels, by_cells}) {
    const onnx::Model original = frozen_pyramid(flatten);
    onnx::Model model = original.clone();
    const RewriteReport report = convert(runtime::default_engine(), model);
    ASSERT_EQ(report.count("fuse_spatial_pyramid_pooling"), 1U) << flatten;
    const auto ops = operators_in(model);
    ASSERT_EQ(ops.size(), 1U);
    EXPECT_EQ(ops[0]->get("levels"), AttributeValue(std::vector<std::int64_t>{4, 2, 1}));
    EXPECT_EQ(text_of(*ops[0]->get("binning")), "window");
    EXPECT_EQ(to_string(*model.graph().outputs()[0]->shape), "[N, 63]");
    EXPECT_THAT(report.warnings, testing::ElementsAre(HasSubstr("14 x 14")));
    expect_same_at(original, model, 14);
  }
}

TEST(FrozenPyramid, OfNoSizeStays) {
  // 4 x 4 windows of 15 x 15, 2 x 2 of 14 x 14.
  onnx::Model model = inferred_text_model(
      {{"x", onnx::ElementType::f32, {Dim::symbol("N"), 3, onnx::unknown_dim(), onnx::unknown_dim()}}},
      "p4 = MaxPool<kernel_shape=[3, 3], strides=[3, 3]>(x)\n"
      "p2 = MaxPool<kernel_shape=[7, 7], strides=[7, 7]>(x)\n"
      "l4 = Constant<value=int64([-1, 75])>()\n"
      "l2 = Constant<value=int64([-1, 12])>()\n"
      "f4 = Reshape(p4, l4)\n"
      "f2 = Reshape(p2, l2)\n"
      "y = Concat<axis=1>(f4, f2)",
      {"y"});
  const RewriteReport report = convert(runtime::default_engine(), model);
  EXPECT_EQ(report.count("fuse_spatial_pyramid_pooling"), 0U);
  ASSERT_EQ(report.near_misses.size(), 1U);
  EXPECT_THAT(report.near_misses[0].reason, HasSubstr("are dynamic"));
}

}  // namespace
}  // namespace graft::passes::fusion_test

// A rewrite that computes something else is taken back and reported; one that cannot be proven is not made.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "graft/registry.hpp"
#include "passes/pipeline.hpp"
#include "passes/rewriter.hpp"
#include "tests/passes/models.hpp"

namespace graft {
namespace {

constexpr auto normalize_rows = R"(
squares = Mul(x, x)
axes = Constant<value=int64([1])>()
sum = ReduceSum<keepdims=1>(squares, axes)
epsilon = Constant<value=float(1e-12)>()
bounded = Max(sum, epsilon)
norm = Sqrt(bounded)
y = Div(x, norm)
)";

/// Fuses as fuse_l2_normalize does, but with another epsilon, or along another axis.
void fuse_wrongly(Rewriter& rewriter, float epsilon, std::int64_t axis) {
  Graph& graph = rewriter.model().graph();
  std::shared_ptr<Operator> op = find_operator("L2Normalize")->create();
  ASSERT_TRUE(op->set("epsilon", epsilon).ok());
  ASSERT_TRUE(op->set("axes", std::vector<std::int64_t>{axis}).ok());
  Value* y = graph.find("y");
  const bool done = rewriter.apply({.nodes = graph.nodes(),
                                    .inputs = {graph.find("x")},
                                    .outputs = {y},
                                    .replacement = to_text(*op),
                                    .reason = "a mistake",
                                    .by_definition = "",
                                    .edit = operator_edit(op, {"x"}, "y")});
  EXPECT_EQ(done, rewriter.options().prove ? epsilon == 1e-12F && axis == 1 : true);
}

ConvertReport convert_with(Model& model, void (*run)(Rewriter&), bool prove = true) {
  ConvertOptions options;
  options.without = {"fuse_l2_normalize"};
  options.prove = prove;
  options.extra_passes = {{"mistake", "to be caught", run}};
  return convert(model, options);
}

TEST(Proof, WrongEpsilonIsTakenBack) {
  const Model original = make_model({{"x", ElementType::f32, {Dim::symbol("N"), 8}}}, normalize_rows, {"y"});
  Model model = original.clone();
  const ConvertReport report = convert_with(model, [](Rewriter& rewriter) { fuse_wrongly(rewriter, 1e-6F, 1); });
  ASSERT_EQ(report.undone.size(), 1U);
  EXPECT_EQ(report.undone[0].pass, "mistake");
  EXPECT_THAT(report.undone[0].proof, testing::HasSubstr("y"));
  EXPECT_EQ(report.count("mistake"), 0U);
  EXPECT_TRUE(operators_in(model).empty());
  EXPECT_EQ(count_of(model, "Sqrt"), 1U);
  EXPECT_TRUE(verify_models(original, model).equal());
}

TEST(Proof, WrongAxisIsTakenBack) {
  Model model = make_model({{"x", ElementType::f32, {8, 8}}}, normalize_rows, {"y"});
  const ConvertReport report = convert_with(model, [](Rewriter& rewriter) { fuse_wrongly(rewriter, 1e-12F, 0); });
  EXPECT_EQ(report.undone.size(), 1U);
  EXPECT_TRUE(operators_in(model).empty());
}

TEST(Proof, TheRightRewriteOfTheSameKindStays) {
  Model model = make_model({{"x", ElementType::f32, {Dim::symbol("N"), 8}}}, normalize_rows, {"y"});
  const ConvertReport report = convert_with(model, [](Rewriter& rewriter) { fuse_wrongly(rewriter, 1e-12F, 1); });
  EXPECT_TRUE(report.undone.empty());
  EXPECT_EQ(report.count("mistake"), 1U);
  EXPECT_EQ(operators_in(model).size(), 1U);
}

TEST(Proof, WithoutProofTheMistakeGoesThroughAndTheReportSaysSo) {
  Model model = make_model({{"x", ElementType::f32, {Dim::symbol("N"), 8}}}, normalize_rows, {"y"});
  const ConvertReport report = convert_with(
      model, [](Rewriter& rewriter) { fuse_wrongly(rewriter, 1e-6F, 1); }, false);
  ASSERT_EQ(report.count("mistake"), 1U);
  EXPECT_THAT(report.rewrites.back().proof, testing::HasSubstr("not proven"));
}

TEST(Proof, ASharedIntermediateIsRefused) {
  Model model = make_model({{"x", ElementType::f32, {Dim::symbol("N"), 8}}},
                           std::string(normalize_rows) + "z = Exp(sum)\n", {"y", "z"});
  const ConvertReport report = convert(model);
  EXPECT_EQ(report.count("fuse_l2_normalize"), 0U);
  ASSERT_EQ(report.near_misses.size(), 1U);
  EXPECT_THAT(report.near_misses[0].reason, testing::HasSubstr("used"));
}

TEST(Proof, WithoutARunTheRewriteIsLeftOutAndReported) {
  // No region of this kind can be run by itself, since nothing is known of the rank of x; the whole model cannot
  // either.
  Model model = make_model({{"x", ElementType::f32, {2, 8}}}, normalize_rows, {"y"});
  for (Value* value : model.graph().values()) {
    if (!value->initializer) value->shape.reset();
  }
  ConvertOptions options;
  options.without = {"fuse_l2_normalize", "fold_constants"};
  options.extra_passes = {{"unprovable", "to be left out", [](Rewriter& rewriter) {
                             Graph& graph = rewriter.model().graph();
                             const bool done = rewriter.apply({.nodes = graph.nodes(),
                                                               .inputs = {graph.find("x")},
                                                               .outputs = {graph.find("y")},
                                                               .replacement = "nothing in particular",
                                                               .reason = "nobody can tell",
                                                               .by_definition = "",
                                                               .edit = [](Graph&) {}});
                             EXPECT_FALSE(done);
                           }}};
  const ConvertReport report = convert(model, options);
  ASSERT_EQ(report.undone.size(), 1U);
  EXPECT_THAT(report.undone[0].proof, testing::HasSubstr("cannot be run"));
}

TEST(Proof, UnknownPassIsRefusedByName) {
  Model model = make_model({{"x", ElementType::f32, {2, 8}}}, normalize_rows, {"y"});
  ConvertOptions options;
  options.only = {"fuse_everything"};
  try {
    convert(model, options);
    FAIL() << "accepted";
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), testing::HasSubstr("fuse_everything"));
    EXPECT_THAT(error.what(), testing::HasSubstr("fuse_l2_normalize"));
  }
}

TEST(Proof, PassesCanBeLeftOut) {
  Model model = make_model({{"x", ElementType::f32, {2, 8}}}, normalize_rows, {"y"});
  ConvertOptions options;
  options.without = {"fuse_l2_normalize"};
  const ConvertReport report = convert(model, options);
  EXPECT_EQ(count_of(model, "Sqrt"), 1U);
  for (const PassSummary& pass : report.passes) EXPECT_NE(pass.pass, "fuse_l2_normalize");
}

}  // namespace
}  // namespace graft

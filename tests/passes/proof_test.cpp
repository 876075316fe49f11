// Tests that a wrong rewrite is rejected and reported, and that a rewrite without a possible proof is not applied.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "graft/error.hpp"
#include "graft/operator/registry.hpp"
#include "passes/passes.hpp"
#include "passes/pipeline.hpp"
#include "passes/rewriter.hpp"
#include "runtime/default_engine.hpp"
#include "tests/passes/models.hpp"

namespace graft::passes::proof_test {
namespace {

using runtime::default_engine;
using test::count_of;
using test::inferred_text_model;
using test::producer;

constexpr auto normalize_rows = R"(
squares = Mul(x, x)
axes = Constant<value=int64([1])>()
sum = ReduceSum<keepdims=1>(squares, axes)
epsilon = Constant<value=float(1e-12)>()
bounded = Max(sum, epsilon)
norm = Sqrt(bounded)
y = Div(x, norm)
)";

/// Fuses like fuse_l2_normalize, but with a wrong epsilon or axis.
void fuse_wrongly(Rewriter& rewriter, float epsilon, std::int64_t axis) {
  onnx::Graph& graph = rewriter.model().graph();
  std::shared_ptr<Operator> op = find_operator("L2Normalize")->create();
  ASSERT_TRUE(op->set("epsilon", epsilon).ok());
  ASSERT_TRUE(op->set("axes", std::vector<std::int64_t>{axis}).ok());
  onnx::Value* y = graph.find("y");
  const bool done = rewriter.apply({.nodes = graph.nodes(),
                                    .inputs = {graph.find("x")},
                                    .outputs = {y},
                                    .replacement = to_text(*op),
                                    .reason = "a mistake",
                                    .by_definition = "",
                                    .edit = operator_edit(op, {"x"}, "y")});
  EXPECT_EQ(done, rewriter.options().prove ? epsilon == 1e-12F && axis == 1 : true);
}

RewriteReport convert_with(onnx::Model& model, void (*run)(Rewriter&), bool prove = true) {
  ConvertOptions options;
  options.without = {"fuse_l2_normalize"};
  options.prove = prove;
  options.extra_passes = {{"mistake", "to be caught", run}};
  return convert(runtime::default_engine(), model, options);
}

TEST(Proof, WrongEpsilonIsTakenBack) {
  const onnx::Model original =
      inferred_text_model({{"x", onnx::ElementType::f32, {Dim::symbol("N"), 8}}}, normalize_rows, {"y"});
  onnx::Model model = original.clone();
  const RewriteReport report = convert_with(model, [](Rewriter& rewriter) { fuse_wrongly(rewriter, 1e-6F, 1); });
  ASSERT_EQ(report.rejected.size(), 1U);
  EXPECT_EQ(report.rejected[0].pass, "mistake");
  EXPECT_THAT(report.rejected[0].proof, testing::HasSubstr("y"));
  EXPECT_EQ(report.count("mistake"), 0U);
  EXPECT_TRUE(operators_in(model).empty());
  EXPECT_EQ(count_of(model, "Sqrt"), 1U);
  EXPECT_TRUE(verify::verify_models(runtime::default_engine(), original, model).equal());
}

TEST(Proof, WrongAxisIsTakenBack) {
  onnx::Model model = inferred_text_model({{"x", onnx::ElementType::f32, {8, 8}}}, normalize_rows, {"y"});
  const RewriteReport report = convert_with(model, [](Rewriter& rewriter) { fuse_wrongly(rewriter, 1e-12F, 0); });
  EXPECT_EQ(report.rejected.size(), 1U);
  EXPECT_TRUE(operators_in(model).empty());
}

TEST(Proof, TheRightRewriteOfTheSameKindStays) {
  onnx::Model model =
      inferred_text_model({{"x", onnx::ElementType::f32, {Dim::symbol("N"), 8}}}, normalize_rows, {"y"});
  const RewriteReport report = convert_with(model, [](Rewriter& rewriter) { fuse_wrongly(rewriter, 1e-12F, 1); });
  EXPECT_TRUE(report.rejected.empty());
  EXPECT_EQ(report.count("mistake"), 1U);
  EXPECT_EQ(operators_in(model).size(), 1U);
}

TEST(Proof, WithoutProofTheMistakeGoesThroughAndTheReportSaysSo) {
  onnx::Model model =
      inferred_text_model({{"x", onnx::ElementType::f32, {Dim::symbol("N"), 8}}}, normalize_rows, {"y"});
  const RewriteReport report = convert_with(
      model, [](Rewriter& rewriter) { fuse_wrongly(rewriter, 1e-6F, 1); }, false);
  ASSERT_EQ(report.count("mistake"), 1U);
  EXPECT_THAT(report.rewrites.back().proof, testing::HasSubstr("not proven"));
}

TEST(Proof, ASharedIntermediateIsRefused) {
  onnx::Model model = inferred_text_model({{"x", onnx::ElementType::f32, {Dim::symbol("N"), 8}}},
                                          std::string(normalize_rows) + "z = Exp(sum)\n", {"y", "z"});
  const RewriteReport report = convert(runtime::default_engine(), model);
  EXPECT_EQ(report.count("fuse_l2_normalize"), 0U);
  ASSERT_EQ(report.near_misses.size(), 1U);
  EXPECT_THAT(report.near_misses[0].reason, testing::HasSubstr("used"));
}

/// The CPU engine of the tests under another name, which refuses models with one operator.
class Renamed final : public runtime::Engine {
 public:
  explicit Renamed(std::string name, std::string refused = "", const runtime::Engine* second = nullptr)
      : name_(std::move(name)), refused_(std::move(refused)), second_(second) {}

  [[nodiscard]] std::string_view name() const override { return name_; }
  [[nodiscard]] const runtime::Engine* second() const override { return second_; }
  [[nodiscard]] std::unique_ptr<runtime::CompiledModel> compile(const onnx::Model& model,
                                                                const runtime::CompileOptions& options) const override {
    if (count_of(model, refused_) != 0) throw Error("there is no kernel for " + refused_);
    return default_engine().compile(model, options);
  }
  [[nodiscard]] runtime::TensorMap evaluate_constant_graph(const onnx::Model& model) const override {
    return default_engine().evaluate_constant_graph(model);
  }

 private:
  std::string name_;
  std::string refused_;
  const runtime::Engine* second_;
};

/// Replaces Relu by another operator, as a rewrite that only ONNX Runtime proves.
RewriteReport replace_relu(const runtime::Engine& engine, const std::string& op_type) {
  onnx::Model model = inferred_text_model({{"x", onnx::ElementType::f32, {2, 8}}}, "a = Relu(x)\ny = Exp(a)", {"y"});
  ConvertOptions options;
  options.extra_passes = {{"mistake", "to be caught", [&](Rewriter& rewriter) {
                             onnx::Node& relu = *rewriter.model().graph().find("a")->producer;
                             Proposal proposal = propose_for(relu, op_type, "a test");
                             proposal.where_engine_lacks_it = "by definition";
                             proposal.is_proven_by_onnxruntime = true;
                             proposal.edit = [&](onnx::Graph& graph) {
                               onnx::Value* a = graph.find("a");
                               onnx::Node* old = a->producer;
                               onnx::Node* made = graph.add_node(op_type, {old->input(0)}, {"made"}, old);
                               graph.replace_all_uses(*a, *made->output());
                             };
                             rewriter.apply(proposal);
                           }}};
  return convert(engine, model, options);
}

TEST(Proof, OnnxRuntimeJudgesWhatItDefines) {
  const Renamed judge("ONNX Runtime 1");
  const Renamed with_judge("Another 1", "", &judge);
  for (const runtime::Engine* engine :
       {&static_cast<const runtime::Engine&>(judge), &static_cast<const runtime::Engine&>(with_judge)}) {
    const RewriteReport wrong = replace_relu(*engine, "Abs");
    ASSERT_EQ(wrong.rejected.size(), 1U) << engine->name();
    EXPECT_THAT(wrong.rejected[0].proof, testing::HasSubstr("output 'a' with"));
    const RewriteReport right = replace_relu(*engine, "Relu");
    ASSERT_EQ(right.count("mistake"), 1U) << engine->name();
    EXPECT_THAT(right.rewrites[0].proof, testing::HasSubstr(" runs, "));
  }
}

TEST(Proof, TheDefinitionIsTheProofWhereOnnxRuntimeRunsNothing) {
  const Renamed without("Another 1");
  const RewriteReport unproven = replace_relu(without, "Abs");
  ASSERT_EQ(unproven.count("mistake"), 1U);
  EXPECT_THAT(unproven.rewrites[0].proof,
              testing::AllOf(testing::StartsWith("by definition; "), testing::HasSubstr("not among the CPU engines")));
  const Renamed judge("ONNX Runtime 1", "Relu");
  const RewriteReport refused = replace_relu(Renamed("Another 1", "", &judge), "Abs");
  ASSERT_EQ(refused.count("mistake"), 1U);
  EXPECT_THAT(refused.rewrites[0].proof, testing::HasSubstr("there is no kernel for Relu"));
}

TEST(Proof, ThePatternOfALibraryIsSaidToBeNearBesideThatOfGraftsWhichIsNearerToTheNode) {
  onnx::Model model = inferred_text_model({{"x", onnx::ElementType::f32, {2, 8}}},
                                          std::string(normalize_rows) + "z = Exp(sum)\n", {"y", "z"});
  ConvertOptions options;
  options.extra_passes = {{library_pass, "a pattern of the user's", [](Rewriter& rewriter) {
                             const onnx::Graph& graph = rewriter.model().graph();
                             rewriter.near_miss("own", {.node = graph.find("y")->producer,
                                                        .matched_nodes = 1,
                                                        .pattern_nodes = 9,
                                                        .reason = "the user asks for this"});
                           }}};
  const RewriteReport report = convert(runtime::default_engine(), model, options);
  ASSERT_EQ(report.near_misses.size(), 2U);
  EXPECT_EQ(report.near_misses[0].reason, "the user asks for this");
  EXPECT_EQ(report.near_misses[1].pass, "fuse_l2_normalize");
}

TEST(Proof, OfOneNodeThePatternIsSaidToBeNearOfWhichTheLargerShareMatched) {
  onnx::Model model = inferred_text_model({{"x", onnx::ElementType::f32, {2, 8}}}, "y = Exp(x)", {"y"});
  const RewriteReport report = convert_with(model, [](Rewriter& rewriter) {
    onnx::Node* node = rewriter.model().graph().find("y")->producer;
    rewriter.near_miss("long", {.node = node, .matched_nodes = 5, .pattern_nodes = 9, .reason = "half of it"});
    rewriter.near_miss("short", {.node = node, .matched_nodes = 2, .pattern_nodes = 3, .reason = "more of it"});
    rewriter.near_miss("far", {.node = node, .matched_nodes = 6, .pattern_nodes = 20, .reason = "little of it"});
  });
  ASSERT_EQ(report.near_misses.size(), 1U);
  EXPECT_EQ(report.near_misses[0].pattern, "short");
}

TEST(Proof, WithoutARunTheRewriteIsLeftOutAndReported) {
  // No region of this kind can be run separately, since the rank of x is unknown; nor can the whole model.
  onnx::Model model = inferred_text_model({{"x", onnx::ElementType::f32, {2, 8}}}, normalize_rows, {"y"});
  for (onnx::Value* value : model.graph().values()) {
    if (!value->initializer) value->shape.reset();
  }
  ConvertOptions options;
  options.without = {"fuse_l2_normalize", "fold_constants"};
  options.extra_passes = {{"unprovable", "to be left out", [](Rewriter& rewriter) {
                             onnx::Graph& graph = rewriter.model().graph();
                             const bool done = rewriter.apply({.nodes = graph.nodes(),
                                                               .inputs = {graph.find("x")},
                                                               .outputs = {graph.find("y")},
                                                               .replacement = "nothing in particular",
                                                               .reason = "nobody can tell",
                                                               .by_definition = "",
                                                               .edit = [](onnx::Graph&) {}});
                             EXPECT_FALSE(done);
                           }}};
  const RewriteReport report = convert(runtime::default_engine(), model, options);
  ASSERT_EQ(report.rejected.size(), 1U);
  EXPECT_THAT(report.rejected[0].proof, testing::HasSubstr("cannot be run"));
}

/// Neither the region proves anything, nor the whole model, although one of its outputs does not depend on random
/// values.
TEST(Proof, RandomNumbersProveNothing) {
  const std::string nodes = "r = RandomNormalLike(x)\ny = Add(x, r)\nz = Exp(x)\n";
  onnx::Model model = test::text_model({{"x", onnx::ElementType::f32, {2, 8}}}, nodes, {"y", "z"});
  ConvertOptions options;
  options.extra_passes = {{"unprovable", "to be left out", [](Rewriter& rewriter) {
                             onnx::Graph& graph = rewriter.model().graph();
                             onnx::Value* y = graph.find("y");
                             const bool done = rewriter.apply({.nodes = {graph.find("r")->producer, y->producer},
                                                               .inputs = {graph.find("x")},
                                                               .outputs = {y},
                                                               .replacement = "nothing in particular",
                                                               .reason = "nobody can tell",
                                                               .by_definition = "",
                                                               .edit = [](onnx::Graph&) {}});
                             EXPECT_FALSE(done);
                           }}};
  const RewriteReport report = convert(runtime::default_engine(), model, options);
  ASSERT_EQ(report.rejected.size(), 1U);
  EXPECT_THAT(report.rejected[0].proof,
              testing::HasSubstr("draws new random numbers in each run, so no run is a proof"));
  EXPECT_THAT(report.rejected[0].proof,
              testing::HasSubstr("output 'y' was not compared: it depends on the random numbers of"));
}

/// Sin of values that f32 cannot distinguish agrees with anything within rounding; the agreement of another output
/// proves nothing.
TEST(Proof, AWholeModelProvesNothingOfAnOutputThatIsLostInNoise) {
  onnx::Model model = inferred_text_model({{"x", onnx::ElementType::f32, {32, 32}}},
                                          "o = Exp(x)\nk = Constant<value=float(1e12)>()\na = Add(o, k)\ny = Sin(a)\n"
                                          "z = Relu(x)\n",
                                          {"y", "z"});
  ConvertOptions options;
  options.extra_passes = {{"unprovable", "to be left out", [](Rewriter& rewriter) {
                             onnx::Graph& graph = rewriter.model().graph();
                             onnx::Value* o = graph.find("o");
                             o->shape.reset();  // so that the region cannot be run separately
                             onnx::Value* y = graph.find("y");
                             const bool done = rewriter.apply(
                                 {.nodes = {graph.find("a")->producer, y->producer},
                                  .inputs = {o},
                                  .outputs = {y},
                                  .replacement = "Cos",
                                  .reason = "nobody can tell",
                                  .by_definition = "",
                                  .edit = [](onnx::Graph& edited) { edited.find("y")->producer->op_type = "Cos"; }});
                             EXPECT_FALSE(done);
                           }}};
  const RewriteReport report = convert(runtime::default_engine(), model, options);
  ASSERT_EQ(report.rejected.size(), 1U);
  EXPECT_THAT(report.rejected[0].proof,
              testing::HasSubstr("the whole model proves nothing: output 'y' cannot be judged, because different "
                                 "rounding of the arithmetic alone changes it as much"));
}

TEST(Proof, UnknownPassIsRefusedByName) {
  onnx::Model model = inferred_text_model({{"x", onnx::ElementType::f32, {2, 8}}}, normalize_rows, {"y"});
  ConvertOptions options;
  options.only = {"fuse_everything"};
  try {
    convert(runtime::default_engine(), model, options);
    FAIL() << "accepted";
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), testing::HasSubstr("fuse_everything"));
    EXPECT_THAT(error.what(), testing::HasSubstr("fuse_l2_normalize"));
  }
}

TEST(Proof, PassesCanBeLeftOut) {
  onnx::Model model = inferred_text_model({{"x", onnx::ElementType::f32, {2, 8}}}, normalize_rows, {"y"});
  ConvertOptions options;
  options.without = {"fuse_l2_normalize"};
  const RewriteReport report = convert(runtime::default_engine(), model, options);
  EXPECT_EQ(count_of(model, "Sqrt"), 1U);
  for (const PassSummary& pass : report.passes) EXPECT_NE(pass.pass, "fuse_l2_normalize");
}

// ---- Equal rewrites

/// Returns x times `count` vectors of weights, one after the other.
onnx::Model chain_of_products(int count, int odd = -1) {
  onnx::Model model;
  onnx::Graph& graph = model.graph();
  graph.name = "test";
  graph.opset_imports[""] = 17;
  onnx::Value* value = graph.add_input("x");
  value->type = onnx::ElementType::f32;
  value->shape = Shape{Dim::symbol("N"), 16};
  for (int i = 0; i < count; ++i) {
    std::vector<double> weights;
    for (int j = 0; j < 16; ++j) weights.push_back(0.75 + 0.03125 * ((i * 7 + j * 3) % 13));
    if (i == odd) weights[3] = -1;
    onnx::Value* constant = graph.add_constant(fmt::format("w{}", i),
                                               onnx::TensorData::from_numbers(onnx::ElementType::f32, {16}, weights));
    value = graph.add_node("Mul", {value, constant}, {fmt::format("y{}", i)})->output();
  }
  graph.add_output(*value);
  infer_shapes(model);
  return model;
}

/// Swaps the factors of each product, and doubles the weights of the products in `wrong`.
void swap_factors(Rewriter& rewriter, const std::set<int>& wrong) {
  int index = 0;
  for (onnx::Node* node : rewriter.model().graph().nodes()) {
    onnx::Value* y = node->output();
    const double factor = wrong.contains(index++) ? 2 : 1;
    rewriter.apply({.nodes = {node},
                    .inputs = {node->input(0)},
                    .outputs = {y},
                    .replacement = "Mul the other way round",
                    .reason = "a test",
                    .by_definition = "",
                    .edit = [name = y->name, factor](onnx::Graph& graph) {
                      onnx::Node* old = graph.find(name)->producer;
                      std::vector<double> weights = *old->input(1)->constant()->numbers();
                      for (double& weight : weights) weight *= factor;
                      onnx::Value* constant = graph.add_constant(
                          "weights", onnx::TensorData::from_numbers(onnx::ElementType::f32, {16}, weights));
                      onnx::Node* made = graph.add_node("Mul", {constant, old->input(0)}, {name}, old);
                      graph.move_output(*old, 0, *made, 0);
                    }});
  }
}

RewriteReport convert_products(onnx::Model& model, void (*run)(Rewriter&), bool prove_each = false) {
  ConvertOptions options;
  options.only = {"swap"};
  options.prove_each = prove_each;
  options.extra_passes = {{"swap", "a test", run}};
  return convert(runtime::default_engine(), model, options);
}

std::vector<ProofKind> kinds_of(const RewriteReport& report) {
  std::vector<ProofKind> kinds;
  for (const Rewrite& rewrite : report.rewrites) kinds.push_back(rewrite.proof_kind);
  return kinds;
}

TEST(ProofsOfAKind, OneIsProvenAndASampleIsChecked) {
  const onnx::Model original = chain_of_products(9);
  onnx::Model model = original.clone();
  const RewriteReport report = convert_products(model, [](Rewriter& rewriter) { swap_factors(rewriter, {}); });
  constexpr auto own = ProofKind::own;
  constexpr auto check = ProofKind::spot_check;
  constexpr auto alike = ProofKind::one_of_a_kind;
  EXPECT_THAT(kinds_of(report), testing::ElementsAre(own, check, alike, check, alike, alike, alike, check, alike));
  EXPECT_EQ(report.proofs_run, 4U);
  EXPECT_EQ(report.spot_checks, 3U);
  EXPECT_EQ(report.proofs_alike, 5U);
  EXPECT_THAT(report.rewrites[2].proof, testing::HasSubstr("structurally equal to node"));
  EXPECT_TRUE(verify::verify_models(runtime::default_engine(), original, model).equal());
}

TEST(ProofsOfAKind, EachIsProvenWhereThatIsAskedFor) {
  onnx::Model model = chain_of_products(9);
  const RewriteReport report = convert_products(
      model, [](Rewriter& rewriter) { swap_factors(rewriter, {}); }, true);
  EXPECT_EQ(report.proofs_run, 9U);
  EXPECT_EQ(report.proofs_alike, 0U);
}

TEST(ProofsOfAKind, WeightsOfAnotherNatureAreAnotherKind) {
  onnx::Model model = chain_of_products(9, 2);
  const RewriteReport report = convert_products(model, [](Rewriter& rewriter) { swap_factors(rewriter, {}); });
  EXPECT_EQ(report.rewrites.at(2).proof_kind, ProofKind::own);
}

void double_by_product(Rewriter& rewriter) {
  for (onnx::Node* node : rewriter.model().graph().nodes()) {
    if (!node->is("Add")) continue;
    onnx::Value* y = node->output();
    rewriter.apply({.nodes = {node},
                    .inputs = {node->input(0)},
                    .outputs = {y},
                    .replacement = "Mul by 2",
                    .reason = "a test",
                    .by_definition = "",
                    .edit = [name = y->name](onnx::Graph& graph) {
                      onnx::Node* old = graph.find(name)->producer;
                      onnx::Value* two =
                          graph.add_constant("two", onnx::TensorData::scalar_of(onnx::ElementType::f32, 2));
                      onnx::Node* made = graph.add_node("Mul", {old->input(0), two}, {name}, old);
                      graph.move_output(*old, 0, *made, 0);
                    }});
  }
}

/// A size below 9 may be a number of channels or coordinates, so it distinguishes kinds.
TEST(ProofsOfAKind, SizesThatTheRegionDoesNotNameMakeNoOtherKind) {
  const auto f32 = onnx::ElementType::f32;
  onnx::Model model =
      inferred_text_model({{"a", f32, {2, 9}}, {"b", f32, {2, 10}}, {"c", f32, {2, 300}}, {"d", f32, {2, 3}}},
                          "ya = Add(a, a)\nyb = Add(b, b)\nyc = Add(c, c)\nyd = Add(d, d)", {"ya", "yb", "yc", "yd"});
  const RewriteReport report = convert_products(model, double_by_product);
  EXPECT_THAT(kinds_of(report),
              testing::ElementsAre(ProofKind::own, ProofKind::spot_check, ProofKind::one_of_a_kind, ProofKind::own));
}

TEST(ProofsOfAKind, OneThatFailsItsCheckHasAllOfThemProven) {
  const onnx::Model original = chain_of_products(9);
  onnx::Model model = original.clone();
  // The third rewrite counts as proven when the fourth is checked.
  const RewriteReport report = convert_products(model, [](Rewriter& rewriter) { swap_factors(rewriter, {2, 3}); });
  EXPECT_EQ(report.rejected.size(), 2U);
  EXPECT_EQ(report.rewrites.size(), 7U);
  EXPECT_EQ(report.proofs_alike, 0U);
  EXPECT_TRUE(verify::verify_models(runtime::default_engine(), original, model).equal());
}

}  // namespace
}  // namespace graft::passes::proof_test

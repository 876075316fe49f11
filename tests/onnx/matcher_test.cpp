// Tests patterns: the graphs that they match or refuse, the reasons, and errors in their text.
#include "onnx/matcher.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "onnx/onnx_io.hpp"
#include "onnx/shape_inference.hpp"
#include "tests/support/folders.hpp"
#include "tests/support/text_model.hpp"

namespace graft::test {
namespace {

constexpr const char* l2 =
    "square = Mul(x, x) | Pow(x, 2)\n"
    "sum = ReduceSum(square, @axes){keepdims=1}\n"
    "bounded = Max(sum, @epsilon)\n"
    "root = Sqrt(bounded)\n"
    "y = Div(x, Expand(root, Shape(x)) | root)";

std::optional<onnx::Match> match_output(onnx::Model& model, const char* pattern, onnx::NearMiss* near = nullptr,
                                        const char* output = "y") {
  return match(onnx::Pattern(pattern), producer(model, output), near);
}

std::string reason(onnx::Model& model, const char* pattern) {
  onnx::NearMiss near;
  EXPECT_FALSE(match_output(model, pattern, &near));
  return near.reason;
}

constexpr const char* l2_nodes =
    "axes = Constant<value_ints=[1]>()\n"
    "eps = Constant<value=float(1e-12)>()\n"
    "square = Mul(x, x)\n"
    "sum = ReduceSum<keepdims=1>(square, axes)\n"
    "bounded = Max(sum, eps)\n"
    "root = Sqrt(bounded)\n"
    "y = Div(x, root)";

std::string replaced(std::string text, const std::string& from, const std::string& to) {
  const auto at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return text.replace(at, from.size(), to);
}

TEST(Matcher, BindsValuesConstantsAndNodes) {
  onnx::Model model = text_model({{"x"}}, l2_nodes, {"y"});
  const auto found = match_output(model, l2);
  ASSERT_TRUE(found);
  EXPECT_EQ(found->value("x").name, "x");
  EXPECT_EQ(found->value("root").name, "root");
  EXPECT_EQ(found->ints("axes"), std::vector<std::int64_t>{1});
  EXPECT_FLOAT_EQ(static_cast<float>(found->scalar("epsilon").value()), 1e-12F);
  EXPECT_EQ(found->nodes.size(), 5U);
  EXPECT_EQ(found->named_nodes.at("sum")->op_type, "ReduceSum");
  EXPECT_EQ(found->root->op_type, "Div");
}

TEST(Matcher, TriesBothOrdersOfCommutativeOperators) {
  onnx::Model model = text_model({{"x"}}, replaced(l2_nodes, "Max(sum, eps)", "Max(eps, sum)"), {"y"});
  EXPECT_TRUE(match_output(model, l2));
  onnx::Model fixed = text_model({{"x"}}, replaced(l2_nodes, "Div(x, root)", "Div(root, x)"), {"y"});
  EXPECT_NE(reason(fixed, l2), "");
}

TEST(Matcher, TriesBothOrdersOfMeanAndOfBits) {
  onnx::Model mean = text_model({{"a"}, {"b"}}, "p = Relu(a)\ny = Mean(b, p)", {"y"});
  EXPECT_TRUE(match_output(mean, "y = Mean(Relu(u), v)"));
  onnx::Model bits = text_model({{"a", onnx::ElementType::i32}, {"b", onnx::ElementType::i32}},
                                "p = BitwiseNot(a)\ny = BitwiseXor(b, p)", {"y"});
  EXPECT_TRUE(match_output(bits, "y = BitwiseXor(BitwiseNot(u), v)"));
}

TEST(Matcher, BacktracksThroughNestedCommutativeOperators) {
  onnx::Model model = text_model({{"a"}, {"b"}}, "p = Add(a, b)\nq = Mul(b, p)\ny = Add(q, a)", {"y"});
  const auto found = match_output(model, "y = Add(u, Mul(Add(u, v), v))");
  ASSERT_TRUE(found);
  EXPECT_EQ(found->value("u").name, "a");
  EXPECT_EQ(found->value("v").name, "b");
}

TEST(Matcher, TriesAlternatives) {
  onnx::Model pow = text_model(
      {{"x"}}, replaced(l2_nodes, "square = Mul(x, x)", "two = Constant<value=float([2])>()\nsquare = Pow(x, two)"),
      {"y"});
  EXPECT_TRUE(match_output(pow, l2));
  onnx::Model expand = text_model(
      {{"x"}}, replaced(l2_nodes, "y = Div(x, root)", "s = Shape(x)\ne = Expand(root, s)\ny = Div(x, e)"), {"y"});
  const auto found = match_output(expand, l2);
  ASSERT_TRUE(found);
  EXPECT_EQ(found->nodes.size(), 7U);
}

TEST(Matcher, SameNameMeansSameValue) {
  onnx::Model model = text_model({{"x"}, {"z"}}, replaced(l2_nodes, "Div(x, root)", "Div(z, root)"), {"y"});
  EXPECT_NE(reason(model, l2).find("'x'"), std::string::npos);
}

TEST(Matcher, ReadsAttributesAndInputsAlike) {
  onnx::Model model = text_model({{"x"}},
                                 replaced(replaced(l2_nodes, "axes = Constant<value_ints=[1]>()\n", ""),
                                          "ReduceSum<keepdims=1>(square, axes)", "ReduceSum<axes=[1]>(square)"),
                                 {"y"}, 11);
  const auto found = match_output(model, l2);
  ASSERT_TRUE(found);
  EXPECT_EQ(found->ints("axes"), std::vector<std::int64_t>{1});
  EXPECT_TRUE(
      match_output(model, replaced(l2, "ReduceSum(square, @axes){keepdims=1}", "ReduceSum(square){axes=[1]}").c_str()));
  onnx::Model newer = text_model({{"x"}}, l2_nodes, {"y"});
  EXPECT_TRUE(
      match_output(newer, replaced(l2, "ReduceSum(square, @axes){keepdims=1}", "ReduceSum(square){axes=[1]}").c_str()));
  onnx::Model clip = text_model({{"x"}}, "y = Clip<min=0.5>(x)", {"y"}, 10);
  EXPECT_EQ(match_output(clip, "y = Clip(x, @low, @high?)")->scalar("low"), 0.5);
}

TEST(Matcher, ConditionsKnowDefaults) {
  onnx::Model model = text_model({{"x"}}, "y = ReduceMean(x)", {"y"});
  EXPECT_TRUE(match_output(model, "y = ReduceMean(x){keepdims=1}"));
  EXPECT_EQ(reason(model, "y = ReduceMean(x){keepdims=0}"),
            "node 'y' (ReduceMean): attribute `keepdims` is 1; the pattern needs 0");
  onnx::Model leaky = text_model({{"x"}}, "y = LeakyRelu(x)", {"y"});
  EXPECT_FLOAT_EQ(static_cast<float>(match_output(leaky, "y = LeakyRelu(x){alpha=@a}")->scalar("a").value()), 0.01F);
  onnx::Model pad = text_model({{"x"}}, "y = Pad<mode=\"reflect\", pads=[1, 1]>(x)", {"y"}, 10);
  EXPECT_TRUE(match_output(pad, "y = Pad(x, @pads){mode=\"reflect\"}"));
  EXPECT_EQ(match_output(pad, "y = Pad(x, *){mode=@mode}")->text("mode"), "reflect");
  EXPECT_NE(reason(pad, "y = Pad(x, @pads){mode=\"edge\"}"), "");
}

TEST(Matcher, LooksThroughNodesThatDoNothing) {
  onnx::Model model =
      text_model({{"x", onnx::ElementType::f32, Shape{2, 3}}},
                 "x1 = Identity(x)\naxes = Constant<value_ints=[1]>()\neps = Constant<value=float(1e-12)>()\n"
                 "square = Mul(x1, x)\nsquare1 = Cast<to=float>(square)\nsum = ReduceSum(square1, axes)\n"
                 "bounded = Max(sum, eps)\ndrop = Dropout(bounded)\nroot = Sqrt(drop)\ny = Div(x, root)",
                 {"y"});
  EXPECT_FALSE(match_output(model, l2));  // without types the Cast may change values
  infer_shapes(model);
  const auto found = match_output(model, l2);
  ASSERT_TRUE(found);
  EXPECT_EQ(found->value("x").name, "x");
}

TEST(Matcher, NumbersAreOfTheTypeOfTheConstant) {
  for (const char* type : {"float", "float16", "bfloat16"}) {
    onnx::Model model =
        text_model({{"x"}}, fmt::format("k = Constant<value={}(0.044715)>()\ny = Mul(x, k)", type), {"y"});
    EXPECT_TRUE(match_output(model, "y = Mul(x, 0.044715)")) << type;
    EXPECT_FALSE(match_output(model, "y = Mul(x, 0.05)")) << type;
  }
}

TEST(Matcher, ACastThatChangesTheTypeStops) {
  onnx::Model model =
      text_model({{"x", onnx::ElementType::f16, Shape{2, 3}}}, "c = Cast<to=float>(x)\ny = Sqrt(c)", {"y"});
  infer_shapes(model);
  EXPECT_FALSE(match_output(model, "y = Sqrt(Relu(x))"));
  EXPECT_EQ(match_output(model, "y = Sqrt(x)")->value("x").name, "c");
}

TEST(Matcher, AnInnerValueUsedElsewhereStops) {
  onnx::Model used = text_model({{"x"}}, std::string(l2_nodes) + "\nz = Neg(sum)", {"y", "z"});
  EXPECT_EQ(reason(used, l2), "'sum' inside the match is used by node 'z' (Neg) too");
  onnx::Model output = text_model({{"x"}}, l2_nodes, {"y", "root"});
  EXPECT_EQ(reason(output, l2), "'root' inside the match is an output of the graph");
  onnx::Model looked_through = text_model(
      {{"x"}}, replaced(l2_nodes, "y = Div(x, root)", "same = Identity(root)\ny = Div(x, same)"), {"y", "same"});
  EXPECT_NE(reason(looked_through, l2), "");
}

TEST(Matcher, AUseInASubGraphStops) {
  onnx::Model model = text_model({{"x"}, {"c", onnx::ElementType::boolean, Shape{}}}, l2_nodes, {"y"});
  onnx::Graph& graph = model.graph();
  onnx::Node* node = graph.add_node("If", {graph.find("c")}, {"z"});
  for (const char* branch : {"then_branch", "else_branch"}) {
    auto inner = std::make_unique<onnx::Graph>(&graph);
    parse_nodes(*inner, "r = Neg(root)", {"r"}, nullptr);
    node->attributes[branch] = onnx::NodeAttribute(onnx::AttributeData(std::move(inner)));
  }
  graph.add_output(*node->output());
  EXPECT_NE(reason(model, l2).find("'root'"), std::string::npos);
}

TEST(Matcher, SaysHowFarItCame) {
  onnx::Model model = text_model(
      {{"x"}}, replaced(l2_nodes, "square = Mul(x, x)", "three = Constant<value=float(3)>()\nsquare = Pow(x, three)"),
      {"y"});
  onnx::NearMiss near;
  EXPECT_FALSE(match_output(model, l2, &near));
  EXPECT_EQ(near.reason, "node 'square' (Pow): input 1 is 3; the pattern needs 2");
  EXPECT_EQ(near.matched_nodes, 5U);
  EXPECT_EQ(near.pattern_nodes, 7U);
  const onnx::MatchResult all = find_matches(onnx::Pattern(l2), model.graph());
  EXPECT_TRUE(all.matches.empty());
  ASSERT_EQ(all.near_misses.size(), 1U);
}

TEST(Matcher, UnlistedInputsHaveToBeAbsent) {
  onnx::Model model = text_model({{"x"}, {"w"}, {"b"}}, "y = Conv(x, w, b)", {"y"});
  EXPECT_FALSE(match_output(model, "y = Conv(x, w)"));
  EXPECT_TRUE(match_output(model, "y = Conv(x, w, *)"));
  EXPECT_TRUE(match_output(model, "y = Conv(x, _, b)"));
  EXPECT_TRUE(match_output(model, "y = Conv(x, w, b?)")->has("b"));
  onnx::Model without = text_model({{"x"}, {"w"}}, "y = Conv(x, w)", {"y"});
  EXPECT_FALSE(match_output(without, "y = Conv(x, w, b?)")->has("b"));
  EXPECT_FALSE(match_output(without, "y = Conv(x, w, b)"));
}

TEST(Matcher, SeveralOutputsAndDomains) {
  onnx::Model model = text_model({{"x"}}, "a, b = Split<axis=1>(x)\ns = Sigmoid(b)\ny = Mul(a, s)", {"y"});
  const char* pattern = "a, b = Split(x)\ny = Mul(a, Sigmoid(b))";
  EXPECT_TRUE(match_output(model, pattern));
  onnx::Model swapped = text_model({{"x"}}, "a, b = Split<axis=1>(x)\ns = Sigmoid(a)\ny = Mul(b, s)", {"y"});
  EXPECT_FALSE(match_output(swapped, pattern));
  onnx::Model custom = text_model({{"x"}}, "y = my.domain::Relu(x)", {"y"});
  EXPECT_TRUE(match_output(custom, "y = my.domain::Relu(x)"));
  EXPECT_FALSE(match_output(custom, "y = Relu(x)"));
}

TEST(Matcher, MatchesDoNotShareNodes) {
  onnx::Model model = text_model({{"x"}}, "a = Relu(x)\nb = Relu(a)\ny = Relu(b)", {"y"});
  EXPECT_EQ(find_matches(onnx::Pattern("y = Relu(Relu(x))"), model.graph()).matches.size(), 1U);
  EXPECT_EQ(find_matches(onnx::Pattern("y = Relu(x)"), model.graph()).matches.size(), 3U);
}

TEST(Matcher, ManyAlternativesEnd) {
  std::string nodes = "v0 = Add(x, x)\n";
  std::string pattern = "p0 = Add(x, x)\n";
  for (int i = 1; i <= 25; ++i) {
    nodes += "v" + std::to_string(i) + " = Add(v" + std::to_string(i - 1) + ", v" + std::to_string(i - 1) + ")\n";
    pattern += "p" + std::to_string(i) + " = Add(p" + std::to_string(i - 1) + ", p" + std::to_string(i - 1) + ")\n";
  }
  onnx::Model model = text_model({{"x"}}, nodes + "y = Neg(v25)", {"y"});
  EXPECT_FALSE(match(onnx::Pattern(pattern + "y = Neg(Mul(p25, p25))"), producer(model, "y")));
}

TEST(Matcher, FindsTheNormalizationOfARealNetwork) {
  onnx::Model model = onnx::read_onnx(golden_folder().string() + "/../../examples/digits/digits.onnx");
  infer_shapes(model);
  const onnx::Pattern pattern(
      "norm = ReduceL2(x){axes=@axes, keepdims=1}\ny = Div(x, Expand(Clip(norm, @epsilon, *), Shape(x)))");
  const onnx::MatchResult found = find_matches(pattern, model.graph());
  ASSERT_EQ(found.matches.size(), 1U);
  EXPECT_EQ(found.matches[0].ints("axes"), std::vector<std::int64_t>{1});
}

struct BadPattern {
  const char* text;
  const char* message;
};

TEST(Matcher, AttributesOfOlderOperatorSetsAreKnown) {
  EXPECT_NO_THROW(onnx::Pattern("y = Clip(x){min=0, max=6}"));
  EXPECT_NO_THROW(onnx::Pattern("y = ReduceSum(x){axes=[1], keepdims=1}"));
}

TEST(Matcher, OperatorsWithoutADomainThatOnnxDoesNotHave) {
  onnx::Model model = text_model({{"x"}}, "y = Relu(x)", {"y"});
  producer(model, "y").op_type = "Gloop";
  EXPECT_TRUE(match_output(model, "y = ai.onnx::Gloop(x){anything=1}") == std::nullopt);
  EXPECT_TRUE(match_output(model, "y = ai.onnx::Gloop(x)"));
}

/// Returns the result of nearest_match for the only graph.
onnx::NearMiss nearest_of(onnx::Model& model, const char* pattern) {
  onnx::Graph* graph = &model.graph();
  const auto found = nearest_match(onnx::Pattern(pattern), {&graph, 1});
  EXPECT_TRUE(found) << pattern;
  return found.value_or(onnx::NearMiss{});
}

TEST(Matcher, NearestDoesNotDependOnTheOrderOfArguments) {
  onnx::Model model = text_model({{"x"}}, "gate = HardSigmoid<alpha=0.25>(x)\ny = Mul(x, gate)", {"y"});
  for (const char* pattern : {"y = Mul(x, HardSigmoid(x){alpha=0.2})", "y = Mul(HardSigmoid(x){alpha=0.2}, x)"}) {
    const onnx::NearMiss near = nearest_of(model, pattern);
    EXPECT_EQ(near.node->op_type, "Mul");
    EXPECT_NE(near.reason.find("attribute `alpha` is 0.25; the pattern needs 0.2"), std::string::npos) << near.reason;
  }
}

TEST(Matcher, NearestIsWhereAnotherNodeStandsRatherThanNone) {
  onnx::Model model = text_model(
      {{"x"}, {"g"}}, "k = Constant<value_float=3.0>()\ns = Mul(g, k)\ngate = HardSigmoid(s)\ny = Mul(x, gate)", {"y"});
  for (const char* pattern : {"y = Mul(x, Sigmoid(Mul(@s, g)))", "y = Mul(Sigmoid(Mul(g, @s)), x)"}) {
    EXPECT_NE(nearest_of(model, pattern).reason.find("(HardSigmoid): the pattern needs Sigmoid here"),
              std::string::npos)
        << nearest_of(model, pattern).reason;
  }
}

TEST(Matcher, NearestIsThePartThatMatchesWhereTheEndDiffers) {
  onnx::Model model = text_model({{"x"}},
                                 "three = Constant<value_float=3.0>()\nzero = Constant<value_float=0.0>()\n"
                                 "six = Constant<value_float=6.0>()\nsixth = Constant<value_float=0.16666667>()\n"
                                 "sum = Add(x, three)\nclip = Clip(sum, zero, six)\ngate = Mul(clip, sixth)\n"
                                 "y = Mul(x, gate)",
                                 {"y"});
  const onnx::NearMiss near = nearest_of(model, "y = Div(Mul(x, Clip(Add(x, 3), 0, 6)), 6)");
  EXPECT_EQ(near.node->op_type, "Clip");
  EXPECT_EQ(near.matched_nodes, 2U);
  EXPECT_EQ(near.pattern_nodes, 4U);
  EXPECT_NE(near.reason.find("(Clip) and the nodes before it match; then node"), std::string::npos) << near.reason;
}

TEST(Matcher, NearestNamesTheReaderThatComesFurthest) {
  onnx::Model model = text_model(
      {{"x"}}, "a = Relu(x)\nb = Sigmoid(a)\nother = Neg(b)\nz = Mul(b, x)\ny = Exp(z)\nw = Add(other, y)", {"w"});
  const onnx::NearMiss near = nearest_of(model, "y = Log(Mul(Sigmoid(Relu(x)), @c))");
  EXPECT_EQ(near.node->op_type, "Sigmoid");
  EXPECT_NE(near.reason.find("(Mul): input 1 is not a constant"), std::string::npos) << near.reason;
}

TEST(Matcher, NearestEnds) {
  std::string nodes = "v0 = Add(x, x)\nv1 = Add(v0, x)\n";
  for (int i = 2; i < 300; ++i) {
    nodes += "v" + std::to_string(i) + " = Add(v" + std::to_string(i - 1) + ", v" + std::to_string(i - 2) + ")\n";
  }
  onnx::Model model = text_model({{"x"}}, nodes + "y = Neg(v299)", {"y"});
  std::string pattern = "Sin(x)";
  for (int i = 0; i < 18; ++i) pattern = "Add(" + pattern + ", a)";
  onnx::Graph* graph = &model.graph();
  // No node matches, as there is no Sin; without a bound the search took 84 s.
  EXPECT_FALSE(nearest_match(onnx::Pattern("y = Abs(" + pattern + ")"), {&graph, 1}));
}

TEST(Matcher, BadPatternsNameTheirPlace) {
  const BadPattern patterns[] = {
      {"", "a pattern needs a line"},
      {"y = x", "line 1, column 1: the root has to be an operator"},
      {"y = Add(x, x", "`)` is missing"},
      {"a = Relu(x)\ny = Neg(x)", "line 1, column 1: no later line uses this one"},
      {"a = Relu(x)\na = Neg(a)", "line 2, column 1: the name is defined twice"},
      {"y = Relu(a)\na = Neg(y)", "line 2, column 1: the name is already used above for an input of the pattern"},
      {"y = HardSigmoid(x){alpha}", "`=` is missing"},
      {"y = Relu(x) x", "line 1, column 13: the line should end here"},
      {"y = Relu(%)", "an unknown character"},
      {"y = Pow(x, 2x)", "a number is missing"},
      {"y = Pad(x){mode=\"reflect}", "a quoted string is not closed"},
      {"y = a::b", "`(` is missing"},
      {"y = Mul(x, HardSigmoid<alpha=0.2, beta=0.5>(Neg(x)))",
       "line 1, column 23: in a pattern attributes follow the inputs, in braces: write "
       "`HardSigmoid(Neg(x)){alpha=0.2, beta=0.5}`"},
      {"y = my::Swish <beta=@beta> (x)", "write `my::Swish(x){beta=@beta}`"},
      {"y = Relu<alpha=1", "write `Relu(x){attribute=1}`"},
      {"y = Relu<alpha=1>(x", "write `Relu(x){attribute=1}`"},
      {"y = HardSigmoid{alpha=0.2}(Neg(x))", "write `HardSigmoid(Neg(x)){alpha=0.2}`"},
      {"y = my::Swish{beta=@beta}(x)", "write `my::Swish(x){beta=@beta}`"},
      {"y = Neg(HardSigmoid(x)<alpha=0.2>)", "write `HardSigmoid(x){alpha=0.2}`"},
      {"y = Mul(x, HardSwich(x))", "line 1, column 12: ONNX has no operator HardSwich (did you mean HardSwish?)"},
      {"y = Mul(x, HardSwich{a=1}(x))", "(did you mean HardSwish?)"},
      {"y = Quantifier(x)",
       "ONNX has no operator Quantifier; write an operator of another domain as my.domain::Quantifier"},
      {"y = HardSigmoid(x){aplha=0.2}",
       "line 1, column 20: HardSigmoid has no attribute `aplha` (did you mean `alpha`?); its attributes are alpha, "
       "beta"},
      {"y = Relu(x){alpha=1}", "Relu has no attribute `alpha`; it has no attributes"},
      {"y = Relu(x, 6)", "line 1, column 5: Relu has one input, but the pattern lists 2"},
      {"y = Add()", "Add has no inputs here"},
      {"y = Clip(x, 0, 6, 7)", "Clip has 3 inputs at most, but the pattern lists 4"},
  };
  for (const BadPattern& bad : patterns) {
    const std::string error = error_of([&] { const onnx::Pattern pattern(bad.text, "mine"); });
    EXPECT_NE(error.find(bad.message), std::string::npos) << bad.text << ": " << error;
    EXPECT_NE(error.find("`mine`"), std::string::npos);
  }
}

}  // namespace
}  // namespace graft::test

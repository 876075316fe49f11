// Tests proofs: equal regions are proven, and each kind of fault is found.
#include "verify/prove/prove.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "runtime/default_engine.hpp"
#include "tests/support/text_model.hpp"

namespace graft::verify::prove_test {
namespace {

using runtime::default_engine;

using test::text_model;
using testing::HasSubstr;

onnx::Model region(const std::string& nodes,
                   const Shape& shape = {Dim::symbol("n"), 3, Dim::symbol("h"), Dim::symbol("w")},
                   onnx::ElementType type = onnx::ElementType::f32) {
  return text_model({{"x", type, shape}}, nodes, {"y"});
}

constexpr const char* normalize_max =
    "axes = Constant<value_ints=[1]>()\nbound = Constant<value=float(1e-12)>()\ns = Mul(x, x)\nt = ReduceSum(s, axes)\n"
    "m = Max(t, bound)\nr = Sqrt(m)\ni = Reciprocal(r)\ny = Mul(x, i)";

TEST(Proof, AcceptsWhatIsTheSame) {
  const ProofResult result = prove_region(runtime::default_engine(), region(normalize_max),
                                          region("y = graft::L2Normalize<axes=[1], epsilon=1e-12>(x)"));
  EXPECT_TRUE(result.proven) << result.text;
  EXPECT_GE(result.trials, 80U);  // 4 sizes, 13 sets of values, both kernels; some runs may be skipped
  EXPECT_EQ(result.skipped, 0U);
  EXPECT_EQ(result.output, "y");
  EXPECT_GT(result.worst.max_absolute, 0) << "another order of arithmetic rounds differently somewhere";
  EXPECT_LE(result.worst.excess, 1);
  EXPECT_THAT(result.text, HasSubstr("runs, largest difference"));
}

TEST(Proof, AcceptsLeakyForms) {
  for (const onnx::ElementType type : {onnx::ElementType::f32, onnx::ElementType::f16}) {
    const std::string constant = type == onnx::ElementType::f32 ? "float(0.1)" : "float16(0.1)";
    const std::string alpha = type == onnx::ElementType::f32 ? "0.1" : "0.0999755859375";
    const ProofResult result = prove_region(
        runtime::default_engine(),
        region("a = Constant<value=" + constant + ">()\nb = Mul(x, a)\ny = Max(x, b)", {Dim::symbol("n"), 5}, type),
        region("y = graft::LeakyReLU<alpha=" + alpha + ">(x)", {Dim::symbol("n"), 5}, type));
    EXPECT_TRUE(result.proven) << result.text;
  }
}

/// Exp(x) * Exp(-x) is 1 unless one of the factors overflows.
TEST(Proof, SmallValuesDoNotOverflow) {
  const onnx::Model before = region("a = Exp(x)\nn = Neg(x)\nb = Exp(n)\ny = Mul(a, b)");
  const onnx::Model after = region("d = Sub(x, x)\ny = Exp(d)");
  EXPECT_FALSE(prove_region(default_engine(), before, after).proven);
  for (const bool spot_check : {false, true}) {
    const ProofResult result =
        prove_region(default_engine(), before, after, {.spot_check = spot_check, .small_values = true});
    EXPECT_TRUE(result.proven) << result.text;
    EXPECT_FALSE(prove_region(default_engine(), before, region("d = Sub(x, x)\ny = Neg(d)"),
                              {.spot_check = spot_check, .small_values = true})
                     .proven);
  }
}

struct Wrong {
  std::string after;
  std::string why;
};

class WrongRewrite : public testing::TestWithParam<Wrong> {};

TEST_P(WrongRewrite, IsFound) {
  const ProofResult result = prove_region(runtime::default_engine(), region(normalize_max), region(GetParam().after));
  EXPECT_FALSE(result.proven) << GetParam().why << ": " << result.text;
  EXPECT_THAT(result.text, HasSubstr("output 'y' with x: ["));
  EXPECT_GT(result.worst.mismatched, 0);
}

INSTANTIATE_TEST_SUITE_P(
    All, WrongRewrite,
    testing::Values(Wrong{"y = graft::L2Normalize<axes=[2], epsilon=1e-12>(x)", "another axis"},
                    Wrong{"y = graft::L2Normalize<axes=[1, 2], epsilon=1e-12>(x)", "one axis more"},
                    Wrong{"y = graft::L2Normalize<axes=[1], epsilon=1e-10>(x)", "another epsilon"},
                    Wrong{"y = graft::L2Normalize<axes=[1], epsilon=2e-12>(x)", "twice the epsilon"},
                    Wrong{"y = graft::L2Normalize<axes=[1], epsilon=1e-12, epsilon_mode=\"norm\">(x)",
                          "epsilon of the norm"},
                    Wrong{"y = graft::L2Normalize<axes=[1], epsilon=1e-12, epsilon_mode=\"add\">(x)", "epsilon added"},
                    Wrong{"y = graft::L2Normalize<axes=[1], epsilon=0.0>(x)", "0 / 0 where it was 0"},
                    Wrong{"y = Identity(x)", "nothing normalized"}));

TEST(Proof, FindsASlopeThatDiffersLittle) {
  const ProofResult result = prove_region(runtime::default_engine(), region("y = LeakyRelu<alpha=0.1>(x)"),
                                          region("y = graft::LeakyReLU<alpha=0.10001>(x)"));
  EXPECT_FALSE(result.proven);
}

TEST(Proof, SaysWhichKernelIsWrong) {
  // For rank 2 the function's ReduceSum runs over axis 1; both refuse a wrong shape.
  const ProofResult result =
      prove_region(runtime::default_engine(), region("y = Neg(x)"), region("y = graft::LeakyReLU<alpha=-1.0>(x)"));
  EXPECT_FALSE(result.proven);
  EXPECT_THAT(result.text,
              testing::AnyOf(HasSubstr("(operators as functions)"), HasSubstr("(operators' own kernels)")));
}

TEST(Proof, NeedsTheSameTypeAndShape) {
  EXPECT_THAT(
      prove_region(runtime::default_engine(), region("y = Identity(x)"), region("y = Cast<to=float16>(x)")).text,
      HasSubstr("becomes f16; it was f32"));
  EXPECT_THAT(prove_region(runtime::default_engine(), region("y = Identity(x)"),
                           region("a = Constant<value_ints=[-1]>()\ny = Reshape(x, a)"))
                  .text,
              HasSubstr("dimensions differ"));
}

TEST(Proof, SkipsSizesThatDoNotFitTogether) {
  const std::vector<test::TextInput> inputs{{"a", onnx::ElementType::f32, {onnx::unknown_dim(), 4}},
                                            {"b", onnx::ElementType::f32, {onnx::unknown_dim(), 4}}};
  const ProofResult result = prove_region(runtime::default_engine(), text_model(inputs, "y = Add(a, b)", {"y"}),
                                          text_model(inputs, "y = Add(b, a)", {"y"}));
  EXPECT_TRUE(result.proven) << result.text;
  EXPECT_GT(result.skipped, 0U);
  EXPECT_GT(result.trials, 0U);
}

TEST(Proof, LetsNoSizeShrinkToWhatIsMostlyRounding) {
  const auto quarter = [](const char* name) { return floor_div(floor_div(Dim::symbol(name) - 1, 2), 2) + 1; };
  const auto deep = [&](const std::string& nodes) {
    return text_model({{"x", onnx::ElementType::f32, {Dim::symbol("n"), 1024, quarter("h"), quarter("w")}},
                       {"s", onnx::ElementType::f32, {1024}},
                       {"b", onnx::ElementType::f32, {1024}}},
                      nodes, {"y"});
  };
  const ProofResult result = prove_region(runtime::default_engine(), deep("y = InstanceNormalization(x, s, b)"),
                                          deep("y = graft::InstanceNorm(x, s, b)"));
  EXPECT_TRUE(result.proven) << result.text;
}

TEST(Proof, RunsLargeFixedSizesOnSmallerOnes) {
  const auto image = [](const std::string& nodes) { return region(nodes, {1, 200, 200, 3}); };
  const ProofResult result =
      prove_region(runtime::default_engine(), image("t = Transpose<perm=[0, 3, 1, 2]>(x)\ny = Relu(t)"),
                   image("r = Relu(x)\ny = Transpose<perm=[0, 3, 1, 2]>(r)"));
  EXPECT_TRUE(result.proven) << result.text;
  EXPECT_GE(result.trials, 40U) << "smaller sizes as well";
}

TEST(Proof, CountsAtTheFixedSizesAlone) {
  const auto image = [](const std::string& nodes) { return region(nodes, {1, 200, 200, 3}); };
  const std::string begin =
      "b = Constant<value_ints=[0]>()\ne = Constant<value_ints=[100]>()\n"
      "a = Constant<value_ints=[1]>()\n";
  const ProofResult cut =
      prove_region(runtime::default_engine(), image("y = Identity(x)"), image(begin + "y = Slice(x, b, e, a)"));
  EXPECT_FALSE(cut.proven) << "the same on all smaller images, and on none of 200 rows: " << cut.text;
  const std::string mean = "y = ReduceMean<axes=[1, 2], keepdims=0>(x)";
  const std::string sum =
      "a = Constant<value_ints=[1, 2]>()\ns = ReduceSum<keepdims=0>(x, a)\n"
      "n = Constant<value=float(40000.0)>()\ny = Div(s, n)";
  const ProofResult only_there = prove_region(runtime::default_engine(), image(mean), image(sum));
  EXPECT_TRUE(only_there.proven) << "the same at the fixed sizes, and on no smaller image: " << only_there.text;
}

TEST(Proof, IsNotGivenWhereNothingRuns) {
  const ProofResult refused =
      prove_region(runtime::default_engine(), region("y = strange::Unheard(x)"), region("y = Identity(x)"));
  EXPECT_FALSE(refused.proven);
  EXPECT_THAT(refused.text, HasSubstr("the original cannot be run"));
  const ProofResult worse =
      prove_region(runtime::default_engine(), region("y = Identity(x)"), region("y = strange::Unheard(x)"));
  EXPECT_FALSE(worse.proven);
  EXPECT_THAT(worse.text, HasSubstr("the rewrite cannot be run"));
}

TEST(Proof, RunsNothingWhoseFixedSizesNoMemoryHolds) {
  const Shape shape{Dim::symbol("n"), Dim(std::int64_t{1} << 20), Dim(std::int64_t{1} << 18)};
  const onnx::Model before = region("y = Relu(x)", shape);
  for (const auto& prove : {prove_region, measure_region}) {
    const ProofResult result = prove(runtime::default_engine(), before, before, {});
    EXPECT_FALSE(result.proven);
    EXPECT_EQ(result.trials, 0U);
    EXPECT_EQ(result.text, "its inputs are too large to be run: 'x' [1, 1048576, 262144]");
  }
  const onnx::Model held = region("y = Relu(x)", {Dim::symbol("n"), Dim(256), Dim(16), Dim(16)});
  ProofOptions options;
  options.max_elements = 256;
  EXPECT_TRUE(prove_region(runtime::default_engine(), held, held, options).proven) << "256 times as many are run";
}

/// The noise floor of random numbers is as large as the numbers: anything would be proven.
TEST(Proof, OfRandomNumbersThereIsNone) {
  const onnx::Model before = region("r = RandomNormalLike(x)\ny = Add(x, r)");
  const onnx::Model after = region("y = Neg(x)");
  for (const auto& [left, right] : {std::pair(&before, &after), std::pair(&after, &before)}) {
    const ProofResult result = prove_region(runtime::default_engine(), *left, *right);
    EXPECT_FALSE(result.proven);
    EXPECT_EQ(result.trials, 0U);
    EXPECT_THAT(result.text, HasSubstr("(RandomNormalLike) draws new random numbers in each run"));
  }
  const onnx::Model shape = region("r = RandomNormalLike(x)\ns = Shape(r)\ny = Cast<to=1>(s)");
  EXPECT_TRUE(prove_region(runtime::default_engine(), shape, region("s = Shape(x)\ny = Cast<to=1>(s)")).proven);
}

/// Sin of values that f32 cannot distinguish is rounding noise, so any rewrite is within its noise floor.
TEST(Proof, NeedsARunOutsideOfRounding) {
  const auto of_large = [](const std::string& nodes) {
    return region("k = Constant<value=float(1e12)>()\na = Add(x, k)\n" + nodes, {32, 32});
  };
  const runtime::Engine& engine = runtime::default_engine();
  const ProofResult other = prove_region(engine, of_large("y = Sin(a)"), of_large("y = Cos(a)"));
  EXPECT_FALSE(other.proven) << other.text;
  EXPECT_THAT(other.text, HasSubstr("output 'y' proves nothing"));
  // Only inputs of 0 agree.
  const ProofResult zeros =
      prove_region(engine, of_large("s = Sin(a)\ny = Mul(s, x)"), of_large("s = Cos(a)\ny = Mul(s, x)"));
  EXPECT_FALSE(zeros.proven) << zeros.text;
  const ProofResult same = prove_region(engine, of_large("y = Sin(a)"), of_large("b = Add(k, x)\ny = Sin(b)"));
  EXPECT_TRUE(same.proven) << same.text;
}

TEST(Proof, NeedsAFiniteNumberOfEachOutput) {
  const auto of_two = [](const std::string& second) {
    return text_model(
        {{"x", onnx::ElementType::f32, {Dim::symbol("n"), 3}}},
        "zero = Constant<value=float(0.0)>()\nmade = Div(zero, zero)\nn = Mul(x, made)\ny = Neg(x)\n" + second,
        {"y", "z"});
  };
  const ProofResult result = prove_region(runtime::default_engine(), of_two("z = Exp(n)"), of_two("z = Sin(n)"));
  EXPECT_FALSE(result.proven) << result.text;
  EXPECT_THAT(result.text, HasSubstr("output 'z' proves nothing, because in"));
}

TEST(Proof, NeedsTheSameNames) {
  EXPECT_THROW((void)prove_region(runtime::default_engine(), region("y = Neg(x)"),
                                  text_model({{"x", onnx::ElementType::f32, {1}}}, "z = Neg(x)", {"z"})),
               Error);
}

TEST(Proof, TakesAToleranceOfTheCaller) {
  const onnx::Model before = region("y = LeakyRelu<alpha=0.1>(x)");
  const onnx::Model after = region("y = graft::LeakyReLU<alpha=0.101>(x)");
  EXPECT_FALSE(prove_region(runtime::default_engine(), before, after).proven);
  EXPECT_TRUE(
      prove_region(runtime::default_engine(), before, after,
                   {.seed = 5, .seeds = 1, .tolerance = Tolerance{.relative = 0.02, .absolute = 0, .of_largest = 0}})
          .proven);
}

ProofOptions emptying(std::vector<std::string> inputs) {
  ProofOptions options;
  options.emptied = std::move(inputs);
  return options;
}

TEST(Proof, RunsInputsWithoutElementsWhereThatIsRequired) {
  const onnx::Model before = region("n = Size(x)\ny = Cast<to=1>(n)");
  const onnx::Model after = region("n = Size(x)\none = Constant<value_int=1>()\nm = Max(n, one)\ny = Cast<to=1>(m)");
  EXPECT_TRUE(prove_region(default_engine(), before, after).proven);
  const ProofResult wrong = prove_region(default_engine(), before, after, emptying({"x"}));
  EXPECT_FALSE(wrong.proven);
  EXPECT_THAT(wrong.text, HasSubstr("x: [0, 3, 3, 3]"));
  const ProofResult right = prove_region(default_engine(), before, before, emptying({"x"}));
  EXPECT_TRUE(right.proven) << right.text;
  EXPECT_EQ(right.without_elements, 3U) << "each of the three open axes is 0 once";
  EXPECT_THAT(right.text, HasSubstr("'x' has no elements in 3 of them"));
}

TEST(Proof, EmptiesNoInputWhoseSizeIsAnother) {
  const Dim n = Dim::symbol("n");
  const auto prove = [&](const Dim& size_of_z) {
    const auto model = [&](const std::string& nodes) {
      return text_model(
          {{"x", onnx::ElementType::f32, {n + Dim::symbol("m")}}, {"z", onnx::ElementType::f32, {size_of_z}}}, nodes,
          {"y"});
    };
    const onnx::Model before = model("c = Size(x)\ny = Cast<to=1>(c)");
    const onnx::Model after = model(
        "c = Size(x)\none = Constant<value_int=1>()\nd = Size(z)\ne = Min(d, one)\nf = Max(c, e)\ny = Cast<to=1>(f)");
    EXPECT_TRUE(prove_region(default_engine(), before, after).proven);
    return prove_region(default_engine(), before, after, emptying({"x"})).proven;
  };
  EXPECT_TRUE(prove(n)) << "a part of a sum of no elements has none";
  EXPECT_FALSE(prove(Dim::symbol("k")));
}

TEST(Proof, IsNoneWhereNoInputWithoutElementsWasRun) {
  const onnx::Model fixed = region("y = Neg(x)", {2, 3});
  const ProofResult result = prove_region(default_engine(), fixed, fixed, emptying({"x"}));
  EXPECT_FALSE(result.proven);
  EXPECT_THAT(result.text, HasSubstr("the original was not run where 'x' has no elements"));
}

}  // namespace
}  // namespace graft::verify::prove_test

// Tests wrong rewrites: mutations of the fusions, and faults that random numbers do not show. The proof has to refuse
// all of them, and to accept the correct rewrite that most of them have.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "onnx/shape_inference.hpp"
#include "runtime/default_engine.hpp"
#include "tests/support/text_model.hpp"
#include "verify/prove/prove.hpp"

namespace graft::verify::wrong_rewrites_test {
namespace {

using runtime::default_engine;

using test::text_model;
using test::TextInput;

struct Case {
  std::string name;
  std::vector<TextInput> inputs;
  std::string before;
  std::string right;  ///< Empty if the case has only wrong rewrites.
  std::vector<std::string> wrong;
};

Dim n() { return Dim::symbol("n"); }
Shape image() { return {n(), 4, Dim::symbol("h"), Dim::symbol("w")}; }

std::vector<TextInput> x_of(onnx::ElementType type, Shape shape) { return {{"x", type, std::move(shape)}}; }

std::vector<Case> cases() {
  using enum onnx::ElementType;
  const std::string norm =
      "axes = Constant<value_ints=[1]>()\ne = Constant<value=float(1e-10)>()\nq = Mul(x, x)\ns = ReduceSum(q, axes)\n";
  return {
      {"l2_normalize_add",
       x_of(f32, image()),
       norm + "t = Add(s, e)\nr = Sqrt(t)\ny = Div(x, r)",
       "y = graft::L2Normalize<axes=[1], epsilon=1e-10, epsilon_mode=\"add\">(x)",
       {"y = graft::L2Normalize<axes=[1], epsilon=1e-10, epsilon_mode=\"max\">(x)",
        "y = graft::L2Normalize<axes=[1], epsilon=1e-10, epsilon_mode=\"norm\">(x)",
        "y = graft::L2Normalize<axes=[1], epsilon=1.1e-10, epsilon_mode=\"add\">(x)",
        "y = graft::L2Normalize<axes=[1], epsilon=0.0, epsilon_mode=\"add\">(x)",
        "y = graft::L2Normalize<axes=[2], epsilon=1e-10, epsilon_mode=\"add\">(x)",
        "y = graft::L2Normalize<axes=[1, 2, 3], epsilon=1e-10, epsilon_mode=\"add\">(x)",
        "y = LpNormalization<axis=1, p=2>(x)", "y = LpNormalization<axis=1, p=1>(x)"}},
      {"normalize",
       x_of(f32, image()),
       norm + "t = Add(s, e)\nr = Sqrt(t)\nd = Div(x, r)\nk = Constant<value=float(20.0)>()\ny = Mul(d, k)",
       "y = graft::Normalize<weights=[20.0], epsilon=1e-10, across_spatial=0, channel_shared=1>(x)",
       {"y = graft::Normalize<weights=[20.001], epsilon=1e-10, across_spatial=0, channel_shared=1>(x)",
        "y = graft::Normalize<weights=[20.0], epsilon=1e-9, across_spatial=0, channel_shared=1>(x)",
        "y = graft::Normalize<weights=[20.0], epsilon=1e-10, across_spatial=1, channel_shared=1>(x)"}},
      {"instance_norm",
       x_of(f32, image()),
       "s = Constant<value=float([1.0, 2.0, 3.0, 4.0])>()\nb = Constant<value=float([0.0, 1.0, 0.5, -1.0])>()\n"
       "y = InstanceNormalization<epsilon=1e-3>(x, s, b)",
       "y = graft::InstanceNorm<epsilon=1e-3, scales=[1.0, 2.0, 3.0, 4.0], bias=[0.0, 1.0, 0.5, -1.0]>(x)",
       {"y = graft::InstanceNorm<epsilon=1.1e-3, scales=[1.0, 2.0, 3.0, 4.0], bias=[0.0, 1.0, 0.5, -1.0]>(x)",
        "y = graft::InstanceNorm<epsilon=1e-3, scales=[2.0, 1.0, 3.0, 4.0], bias=[0.0, 1.0, 0.5, -1.0]>(x)",
        "y = graft::InstanceNorm<epsilon=1e-3, scales=[1.0, 2.0, 3.0, 4.0], bias=[1.0, 0.0, 0.5, -1.0]>(x)",
        "y = graft::InstanceNorm<epsilon=1e-3, scales=[0.0, 1.0, 0.5, -1.0], bias=[1.0, 2.0, 3.0, 4.0]>(x)",
        "y = graft::InstanceNorm<epsilon=1e-3, activation=\"relu\", scales=[1.0, 2.0, 3.0, 4.0], bias=[0.0, 1.0, 0.5, "
        "-1.0]>(x)"}},
      {"leaky_relu",
       x_of(f32, image()),
       "a = Constant<value=float(0.2)>()\nm = Mul(x, a)\ny = Max(x, m)",
       "y = graft::LeakyReLU<alpha=0.2>(x)",
       {"y = graft::LeakyReLU<alpha=0.21>(x)", "y = graft::LeakyReLU<alpha=-0.2>(x)", "y = Relu(x)",
        "y = graft::LeakyReLU<alpha=5.0>(x)"}},
      {"padding",
       x_of(f32, image()),
       "p = Constant<value=int64([0, 0, 1, 2, 0, 0, 3, 1])>()\ny = Pad<mode=\"edge\">(x, p)",
       "",
       {"p = Constant<value=int64([0, 0, 1, 2, 0, 0, 3, 1])>()\ny = Pad<mode=\"reflect\">(x, p)",
        "p = Constant<value=int64([0, 0, 1, 2, 0, 0, 3, 1])>()\ny = Pad(x, p)",
        "p = Constant<value=int64([0, 0, 3, 1, 0, 0, 1, 2])>()\ny = Pad<mode=\"edge\">(x, p)",
        "p = Constant<value=int64([0, 0, 2, 1, 0, 0, 1, 3])>()\ny = Pad<mode=\"edge\">(x, p)"}},
      {"upsampling",
       x_of(f32, image()),
       "s = Constant<value=float([1.0, 1.0, 2.0, 2.0])>()\n"
       "y = Resize<mode=\"linear\", coordinate_transformation_mode=\"half_pixel\">(x, _, s)",
       "",
       {"s = Constant<value=float([1.0, 1.0, 2.0, 2.0])>()\n"
        "y = Resize<mode=\"linear\", coordinate_transformation_mode=\"align_corners\">(x, _, s)",
        "s = Constant<value=float([1.0, 1.0, 2.0, 2.0])>()\n"
        "y = Resize<mode=\"linear\", coordinate_transformation_mode=\"asymmetric\">(x, _, s)",
        "s = Constant<value=float([1.0, 1.0, 2.0, 2.0])>()\ny = Resize<mode=\"nearest\">(x, _, s)"}},
      {"transpositions",
       x_of(f32, {n(), Dim::symbol("a"), Dim::symbol("b"), Dim::symbol("c")}),
       "t = Transpose<perm=[0, 2, 3, 1]>(x)\nr = Relu(t)\ny = Transpose<perm=[0, 3, 1, 2]>(r)",
       "y = Relu(x)",
       {"t = Transpose<perm=[0, 2, 1, 3]>(x)\ny = Relu(t)", "y = Transpose<perm=[0, 1, 3, 2]>(x)", "y = Identity(x)"}},
      {"reductions",
       x_of(f32, image()),
       "y = ReduceMean<axes=[2, 3]>(x)",
       "y = GlobalAveragePool(x)",
       {"y = ReduceMean<axes=[2]>(x)", "y = ReduceMax<axes=[2, 3]>(x)", "y = ReduceMean<axes=[2, 3], keepdims=0>(x)",
        "y = ReduceMean<axes=[1, 3]>(x)"}},
      {"limits_in_f16",
       x_of(f16, {n(), 16}),
       "l = Constant<value=float16(0.0)>()\nh = Constant<value=float16(6.0)>()\ny = Clip(x, l, h)",
       "",
       {"y = Relu(x)", "l = Constant<value=float16(0.0)>()\nh = Constant<value=float16(8.0)>()\ny = Clip(x, l, h)"}},
      {"one_number_of_many",
       x_of(f32, {n(), 16}),
       "k = Constant<value=float(0.5)>()\ng = Greater(x, k)\ny = Cast<to=float>(g)",
       "",
       {"k = Constant<value=float(0.5)>()\ng = GreaterOrEqual(x, k)\ny = Cast<to=float>(g)"}},
      {"equality_that_is_rare",
       x_of(f32, {n(), 16}),
       "k = Constant<value=float(7.25)>()\ng = Equal(x, k)\ny = Cast<to=float>(g)",
       "",
       {"z = Constant<value=float(0.0)>()\ny = Mul(x, z)"}},
      {"large_integers",
       x_of(i32, {n(), 16}),
       "k = Constant<value=int32(9)>()\ny = Min(x, k)",
       "",
       {"y = Identity(x)", "k = Constant<value=int32(10)>()\ny = Min(x, k)"}},
      {"negative_integers", x_of(i64, {n(), 16}), "y = Abs(x)", "", {"y = Identity(x)"}},
      {"booleans",
       {{"x", boolean, {n(), 16}}, {"z", boolean, {n(), 16}}},
       "y = And(x, z)",
       "a = Not(x)\nb = Not(z)\nc = Or(a, b)\ny = Not(c)",
       {"y = Or(x, z)", "y = Xor(x, z)", "y = Identity(x)"}},
      {"another_type",
       x_of(f32, {n(), 16}),
       "y = Cast<to=float16>(x)",
       "",
       {"y = Identity(x)", "y = Cast<to=bfloat16>(x)"}},
      {"another_type_of_integers",
       x_of(f32, {n(), 16}),
       "y = ArgMax<axis=1>(x)",
       "",
       {"i = ArgMax<axis=1>(x)\ny = Cast<to=int32>(i)", "y = ArgMin<axis=1>(x)",
        "y = ArgMax<axis=1, select_last_index=1>(x)"}},
      {"one_step_of_int8",
       x_of(f32, {n(), 16}),
       "s = Constant<value=float(0.1)>()\nz = Constant<value=int8(3)>()\ny = QuantizeLinear(x, s, z)",
       "",
       {"s = Constant<value=float(0.1)>()\nz = Constant<value=int8(4)>()\ny = QuantizeLinear(x, s, z)",
        "s = Constant<value=float(0.11)>()\nz = Constant<value=int8(3)>()\ny = QuantizeLinear(x, s, z)"}},
      {"saturated",
       x_of(f32, {n(), 16}),
       "k = Constant<value=float(1000.0)>()\nm = Mul(x, k)\ny = Sigmoid(m)",
       "",
       {"z = Constant<value=float(0.0)>()\ng = Greater(x, z)\ny = Cast<to=float>(g)",
        "k = Constant<value=float(1100.0)>()\nm = Mul(x, k)\ny = Sigmoid(m)"}},
      {"infinities",
       x_of(f32, {n(), 16}),
       "l = Constant<value=float(-1.0)>()\nh = Constant<value=float(1e20)>()\ny = Clip(x, l, h)",
       "",
       {"l = Constant<value=float(-1.0)>()\ny = Max(x, l)"}},
      {"constants_alone",
       {},
       "a = Constant<value=float([1.0, 2.0])>()\ny = Add(a, a)",
       "y = Constant<value=float([2.0, 4.0])>()",
       {"y = Constant<value=float([2.0, 4.001])>()", "y = Constant<value=float(2.0)>()"}},
      {"broadcast_that_hides",
       {{"x", f32, {n(), Dim::symbol("m")}}, {"z", f32, {Dim::symbol("m")}}},
       "y = Add(x, z)",
       "",
       {"a = Constant<value_ints=[1]>()\nu = Unsqueeze(z, a)\ny = Add(x, u)"}},
      {"broadcast_of_one_size",
       {{"x", f32, {Dim::symbol("a"), 3}}, {"z", f32, {Dim::symbol("b"), 3}}},
       "m = Min(x, z)\ny = Max(x, m)",
       "m = Min(z, x)\ny = Max(m, x)",
       {"y = Identity(x)"}},
      {"integers_that_are_moved",
       x_of(i32, {n(), 4}),
       "k = Constant<value=int64([-1])>()\na = Abs(x)\ny = Reshape(a, k)",
       "k = Constant<value=int64([-1])>()\na = Reshape(x, k)\ny = Abs(a)",
       {"k = Constant<value=int64([-1])>()\ny = Reshape(x, k)"}},
      {"integers_beside_indices",
       {{"x", i32, {4, 5}}, {"i", i64, {n()}}},
       "g = Gather(x, i)\ny = Abs(g)",
       "a = Abs(x)\ny = Gather(a, i)",
       {"y = Gather(x, i)", "j = Neg(i)\ng = Gather(x, j)\ny = Abs(g)"}},
      {"no_number",
       x_of(f32, {n(), 16}),
       "z = Constant<value=float(0.0)>()\nq = IsNaN(x)\ny = Where(q, z, x)",
       "z = Constant<value=float(0.0)>()\nq = IsNaN(x)\np = Not(q)\ny = Where(p, x, z)",
       {"y = Identity(x)", "k = Constant<value=float(1.0)>()\nq = IsNaN(x)\ny = Where(q, k, x)"}},
      {"no_number_beside_a_mean",
       x_of(f32, {n(), 16}),
       "z = Constant<value=float(0.0)>()\nq = IsNaN(x)\nw = Where(q, z, x)\ny = ReduceMean<axes=[1]>(w)",
       "",
       {"y = ReduceMean<axes=[1]>(x)"}},
      {"no_number_asked_for_afterwards",
       x_of(f32, {n(), 16}),
       "z = Constant<value=float(0.0)>()\ng = Greater(x, z)\ny = Not(g)",
       "",
       {"z = Constant<value=float(0.0)>()\ng = Greater(x, z)\nc = Not(g)\nq = IsNaN(x)\np = Not(q)\ny = And(c, p)"}},
      {"infinity",
       x_of(f32, {n(), 16}),
       "z = Constant<value=float(0.0)>()\nq = IsInf(x)\ny = Where(q, z, x)",
       "",
       {"y = Identity(x)", "z = Constant<value=float(0.0)>()\nq = IsInf<detect_negative=0>(x)\ny = Where(q, z, x)"}},
      {"infinity_that_becomes_no_number",
       x_of(f32, {n(), 16}),
       "k = Constant<value=float(1.0)>()\ny = Min(x, k)",
       "",
       {"k = Constant<value=float(1.0)>()\nm = Min(x, k)\nd = Sub(x, x)\ny = Add(m, d)"}},
      {"order_of_a_difference",
       {{"x", f32, {n(), 4}}, {"z", f32, {n(), 4}}},
       "y = Sub(x, z)",
       "m = Neg(z)\ny = Add(x, m)",
       {"y = Sub(z, x)", "d = Sub(x, z)\ny = Abs(d)"}},
      {"batch_written_out",
       x_of(f32, {n(), 4, 3}),
       "s = Constant<value=int64([0, 12])>()\ny = Reshape(x, s)",
       "s = Constant<value=int64([-1, 12])>()\ny = Reshape(x, s)",
       {"s = Constant<value=int64([1, -1])>()\ny = Reshape(x, s)",
        "t = Transpose<perm=[0, 2, 1]>(x)\ns = Constant<value=int64([0, 12])>()\ny = Reshape(t, s)"}},
  };
}

class WrongRewrites : public testing::TestWithParam<Case> {};

TEST_P(WrongRewrites, AreFound) {
  const Case& test = GetParam();
  onnx::Model before = text_model(test.inputs, test.before, {"y"});
  infer_shapes(before);
  if (!test.right.empty()) {
    const ProofResult right =
        prove_region(runtime::default_engine(), before, text_model(test.inputs, test.right, {"y"}));
    EXPECT_TRUE(right.proven) << right.text;
  }
  for (const std::string& wrong : test.wrong) {
    // The output keeps its declared type and shape, as in a region that a pass edits.
    onnx::Model after = text_model(test.inputs, wrong, {"y"});
    after.graph().outputs()[0]->type = before.graph().outputs()[0]->type;
    const ProofResult result = prove_region(runtime::default_engine(), before, after);
    EXPECT_FALSE(result.proven) << wrong << ": " << result.text;
    EXPECT_THAT(result.text, testing::Not(testing::HasSubstr("cannot be run"))) << wrong;
  }
}

INSTANTIATE_TEST_SUITE_P(All, WrongRewrites, testing::ValuesIn(cases()),
                         [](const auto& info) { return info.param.name; });

TEST(WrongRewrites, AreThirtyAndMore) {
  std::size_t count = 0;
  for (const Case& test : cases()) count += test.wrong.size();
  EXPECT_GE(count, 50U);
}

}  // namespace
}  // namespace graft::verify::wrong_rewrites_test

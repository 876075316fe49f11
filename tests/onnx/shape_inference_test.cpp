// Tests symbolic shape inference; tests/python/graph compares constant shapes with onnx.
#include "onnx/shape_inference.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "onnx/faults.hpp"
#include "onnx/onnx_io.hpp"
#include "onnx/text.hpp"
#include "tests/support/folders.hpp"
#include "tests/support/text_model.hpp"

namespace graft::test {
namespace {

const Dim n = Dim::symbol("n");
const Dim h = Dim::symbol("h");

/// Returns the type of `y` for an input x of this shape.
std::string inferred(const Shape& x, const std::string& text, std::int64_t opset = 17) {
  onnx::Model model = text_model({{"x", onnx::ElementType::f32, x}}, text, {"y"}, opset);
  infer_shapes(model);
  return type_text(*model.graph().find("y"));
}

TEST(ShapeInference, KeepsSymbols) {
  EXPECT_EQ(inferred({n, 3}, "y = Relu(x)"), "f32[n, 3]");
  EXPECT_EQ(inferred({n, 1, h}, "t = Transpose<perm=[2, 0, 1]>(x)\ny = Neg(t)"), "f32[h, n, 1]");
  EXPECT_EQ(inferred({n, 4}, "y = Concat<axis=0>(x, x)"), "f32[(n + n), 4]");
  EXPECT_EQ(inferred({n, 4, h}, "y = Flatten(x)"), "f32[n, (4 * h)]");
  EXPECT_EQ(inferred({n, 4, h}, "y = ReduceMean<axes=[1, -1], keepdims=0>(x)"), "f32[n]");
  EXPECT_EQ(inferred({n, 3, h, h}, "y = MaxPool<kernel_shape=[2, 2], strides=[2, 2]>(x)"),
            "f32[n, 3, (floor_div((h - 2), 2) + 1), (floor_div((h - 2), 2) + 1)]");
}

TEST(ShapeInference, OperatorsOfStringsAndBits) {
  EXPECT_EQ(inferred({n, 3}, "y = BitCast<to=6>(x)", 26), "i32[n, 3]");
  EXPECT_EQ(inferred({n, 3}, "s = Cast<to=8>(x)\ny = StringConcat(s, s)", 20), "string[n, 3]");
  EXPECT_EQ(inferred({n, 3}, "s = Cast<to=8>(x)\ny = RegexFullMatch<pattern=\"a\">(s)", 20), "bool[n, 3]");
}

/// PyTorch writes such nodes for the amounts by which it pads to a size.
TEST(ShapeInference, FollowsTablesOfSizes) {
  const std::string padded =
      "s = Shape(x)\nzero = Constant<value_ints=[0]>()\nten = Constant<value=int64([10])>()\n"
      "size = Gather(s, zero)\nmissing = Sub(ten, size)\nlist = Concat<axis=0>(zero, zero, zero, missing)\n"
      "pairs_shape = Constant<value_ints=[-1, 2]>()\npairs = Reshape(list, pairs_shape)\n"
      "minus = Constant<value_ints=[-1]>()\nfar = Constant<value_ints=[-9]>()\n"
      "reversed = Slice(pairs, minus, far, zero, minus)\n";
  const std::string all = "flat = Reshape(order, minus)\ny = Pad(x, flat)";
  EXPECT_EQ(inferred({n, 4}, padded + "order = Transpose<perm=[1, 0]>(reversed)\n" + all), "f32[(n + (10 - n)), 4]");
  EXPECT_EQ(inferred({n, 4}, padded + "order = Identity(reversed)\n" + all), "f32[n, (4 + (10 - n))]");
  EXPECT_EQ(inferred({n, 4}, padded + "order = Transpose<perm=[0, 1]>(pairs)\n" + all), "f32[n, (4 + (10 - n))]");
}

TEST(ShapeInference, FollowsShapesThatAreComputed) {
  EXPECT_EQ(inferred({n, 4, h},
                     "s = Shape(x)\nzero = Constant<value_ints=[0]>()\nfirst = Gather(s, zero)\nrest = "
                     "Constant<value_ints=[-1]>()\n"
                     "target = Concat<axis=0>(first, rest)\ny = Reshape(x, target)"),
            "f32[n, (h * 4)]");
  EXPECT_EQ(inferred({n, h},
                     "s = Shape(x)\nminus = Constant<value=int64([-1, 1])>()\ntwo = Constant<value=int64([2])>()\n"
                     "same = Equal(s, minus)\nones = ConstantOfShape<value=int64([1])>(two)\nt = Where(same, ones, s)\n"
                     "z = Constant<value=float([1])>()\ny = Expand(z, t)"),
            "f32[?, ?]");  // h may or may not be 1
  EXPECT_EQ(inferred({n, 6, h},
                     "s = Shape<start=1, end=2>(x)\ntwo = Constant<value=int64(2)>()\nhalf = Div(s, two)\n"
                     "rest = Constant<value_ints=[-1]>()\ntarget = Concat<axis=0>(rest, half)\ny = Reshape(x, target)"),
            "f32[((n * h) * 2), 3]");
}

// The sizes are those of ONNX Runtime: a start before the data is clamped to its first element for either sign of step.
TEST(ShapeInference, FollowsSlicesOfTables) {
  const std::string table =
      "s = Shape(x)\nr = Unsqueeze(s, i0)\nc = Constant<value_ints=[7, 8, 9]>()\nd = Unsqueeze(c, i0)\n"
      "t = Concat<axis=0>(r, d)\n";  // [[n, 4, 6], [7, 8, 9]]
  const std::string numbers =
      "i0 = Constant<value_ints=[0]>()\ni1 = Constant<value_ints=[1]>()\ni2 = Constant<value_ints=[2]>()\n"
      "m1 = Constant<value_ints=[-1]>()\nbefore = Constant<value_ints=[-9]>()\n"
      "two = Constant<value_ints=[1, 2]>()\nend = Constant<value_ints=[2, 3]>()\n";
  const auto size = [&](const std::string& nodes) { return inferred({n, 4, 6}, numbers + table + nodes); };
  const std::string result = "f = Reshape(p, m1)\ny = ConstantOfShape(f)";
  EXPECT_EQ(size("p = Slice(t, i0, i1, i0)\n" + result), "f32[n, 4, 6]");
  EXPECT_EQ(size("p = Slice(t, i1, i2, i1)\n" + result), "f32[4, 8]");
  EXPECT_EQ(size("a = Constant<value_ints=[0, 1]>()\np = Slice(t, two, end, a)\n" + result), "f32[9]");
  EXPECT_EQ(size("p = Slice(t, m1, before, i0, m1)\n" + result), "f32[7, 8, 9, n, 4, 6]");
  // Rows and columns broadcast to a table, which is not tracked.
  EXPECT_EQ(size("a = Transpose(r)\nb = Add(r, a)\np = Slice(b, i0, i1, i0)\n" + result), "f32[...]");
  EXPECT_EQ(size("u, v, w = Split<axis=0>(s)\np = Concat<axis=0>(v, u)\n" + result), "f32[4, n]");
}

TEST(ShapeInference, RemaindersOfSizes) {
  const std::string numbers = "s = Shape(x)\nb = Constant<value_ints=[4]>()\nc = Constant<value_ints=[9]>()\n";
  onnx::Model model =
      text_model({{"x", onnx::ElementType::f32, {n}}},
                 numbers + "a = Add(s, c)\nm = Mod(a, b)\nd = Sub(b, m)\np = Mod(d, b)\ny = ConstantOfShape(p)", {"y"});
  infer_shapes(model);
  const Dim size = (*model.graph().find("y")->shape)[0];
  for (std::int64_t number = 0; number < 9; ++number) {
    EXPECT_EQ(size.evaluate([&](const std::string&) { return std::optional(number); }), (4 - (number + 9) % 4) % 4);
  }
  EXPECT_EQ(inferred({n}, numbers + "m = Mod(c, b)\ny = ConstantOfShape(m)"), "f32[1]");
  EXPECT_EQ(inferred({n}, numbers + "f = Mul(s, b)\nm = Mod(f, b)\ny = ConstantOfShape(m)"), "f32[0]");
}

TEST(ShapeInference, SlicesThatBeginBeforeTheData) {
  const auto sliced = [](std::int64_t start, std::int64_t end, std::int64_t step) {
    return inferred({6}, fmt::format("s = Constant<value_ints=[{}]>()\ne = Constant<value_ints=[{}]>()\n"
                                     "a = Constant<value_ints=[0]>()\nt = Constant<value_ints=[{}]>()\n"
                                     "y = Slice(x, s, e, a, t)",
                                     start, end, step));
  };
  EXPECT_EQ(sliced(-9, -99, -1), "f32[1]");
  EXPECT_EQ(sliced(-9, -99, -2), "f32[1]");
  EXPECT_EQ(sliced(-9, 5, -1), "f32[0]");
  EXPECT_EQ(sliced(-9, 5, 1), "f32[5]");
  EXPECT_EQ(sliced(7, -99, -1), "f32[6]");
  EXPECT_EQ(inferred({6},
                     "z = Constant<value_ints=[2, 3]>()\ns = Constant<value_ints=[-9]>()\n"
                     "e = Constant<value_ints=[-99]>()\na = Constant<value_ints=[0]>()\n"
                     "t = Constant<value_ints=[-1]>()\nshape = Slice(z, s, e, a, t)\ny = ConstantOfShape(shape)"),
            "f32[2]");
}

TEST(ShapeInference, ReshapeCancelsSymbols) {
  EXPECT_EQ(inferred({n, 4, 6}, "t = Constant<value_ints=[0, -1]>()\ny = Reshape(x, t)"), "f32[n, 24]");
  EXPECT_EQ(inferred({n, 4, 6}, "t = Constant<value_ints=[-1, 12]>()\ny = Reshape(x, t)"), "f32[(n * 2), 12]");
  EXPECT_EQ(inferred({n, 4}, "t = Constant<value_ints=[-1, 8]>()\ny = Reshape(x, t)"), "f32[floor_div((n * 4), 8), 8]");
}

TEST(ShapeInference, SizesThatAreNumbers) {
  const std::string sizes = "n = Constant<value=int64(9)>()\nm = Constant<value=int64(4)>()\n";
  for (const char* window : {"HannWindow", "HammingWindow", "BlackmanWindow"}) {
    EXPECT_EQ(inferred({n}, sizes + "y = " + window + "(n)"), "f32[9]");
    EXPECT_EQ(inferred({n}, sizes + "y = " + window + "<output_datatype=float16>(n)"), "f16[9]");
    EXPECT_EQ(inferred({n}, std::string("s = Size(x)\ny = ") + window + "(s)"), "f32[n]");
  }
  EXPECT_EQ(inferred({n}, sizes + "r = Constant<value=int64(8)>()\nf = Constant<value=float(1)>()\n"
                                  "y = MelWeightMatrix(m, n, r, f, f)"),
            "f32[5, 4]");
  EXPECT_EQ(inferred({n, 2, 3}, "s = Constant<value=int64([2, 3, 5, 6])>()\ny = AffineGrid(x, s)", 20),
            "f32[2, 5, 6, 2]");
  EXPECT_EQ(inferred({n, 3, 4}, "s = Constant<value=int64([2, 3, 4, 5, 6])>()\ny = AffineGrid(x, s)", 20),
            "f32[2, 4, 5, 6, 3]");
  EXPECT_EQ(inferred({n, h}, "s = Constant<value=int64([7])>()\ny = CenterCropPad<axes=[-1]>(x, s)", 18), "f32[n, 7]");
  EXPECT_EQ(inferred({n, h}, "s = Constant<value=int64([7, 8])>()\ny = CenterCropPad(x, s)", 18), "f32[7, 8]");
  EXPECT_EQ(inferred({n, 10, h},
                     "s = Constant<value=int64([5, 6])>()\nb = Constant<value=int64([1, 5])>()\n"
                     "y = Col2Im(x, s, b)",
                     18),
            "f32[n, 2, 5, 6]");
}

TEST(ShapeInference, UnknownStaysUnknown) {
  EXPECT_EQ(inferred({n, h}, "y = custom::Op(x)"), "?");
  EXPECT_EQ(inferred({n, h}, "a = NonZero(x)\ny = Transpose(a)"), "i64[?, 2]");
  EXPECT_EQ(inferred({n, h, 3},
                     "b = ReduceMax<axes=[0, 1], keepdims=0>(x)\nc = Cast<to=9>(b)\ny = "
                     "Compress<axis=-1>(x, c)"),
            "f32[n, h, ?]");
  EXPECT_EQ(inferred({n, h}, "a = Cast<to=9>(x)\ny = Compress(x, a)"), "f32[?]");
  EXPECT_EQ(inferred({n, h}, "y = Unique<axis=1>(x)"), "f32[n, ?]");
  EXPECT_EQ(inferred({n, h}, "a, y = Unique(x)"), "i64[?]");
  EXPECT_EQ(inferred({n, h}, "t = Transpose(x)\ny = Add(x, t)"), "f32[?, ?]");  // n and h may be 1
}

// The expected shapes are those of numpy.einsum.
TEST(ShapeInference, Einsum) {
  const auto of = [](const Shape& x, const std::string& equation, int inputs = 1) {
    return inferred(x, fmt::format("y = Einsum<equation=\"{}\">(x{})", equation, inputs == 2 ? ", x" : ""));
  };
  EXPECT_EQ(of({n, 3, 4}, "b i j -> b j i"), "f32[n, 4, 3]");
  EXPECT_EQ(of({n, 3, 4}, "bij,bkj->bik", 2), "f32[n, 3, 3]");
  EXPECT_EQ(of({3, 3}, "ii->i"), "f32[3]");
  EXPECT_EQ(of({3, 3}, "ii"), "f32[]");
  EXPECT_EQ(of({3, 4}, "ba"), "f32[4, 3]");
  EXPECT_EQ(of({3, 4}, "ij,kl", 2), "f32[3, 4, 3, 4]");
  EXPECT_EQ(of({2, n, 3, 4}, "...ij->...ji"), "f32[2, n, 4, 3]");
  EXPECT_EQ(of({2, n, 3, 4}, "h...j,h...k->...jk", 2), "f32[n, 3, 4, 4]");
  EXPECT_EQ(of({5, 3, 4}, "...ij"), "f32[5, 3, 4]");
  const auto refused = [&](const std::string& equation) { return error_of([&] { of({3, 4}, equation, 2); }); };
  EXPECT_NE(refused("ij,ji->i").find("its axes 'j' have 4 and 3 elements"), std::string::npos);
  EXPECT_NE(refused("ijk,ij->i").find("input 0 has rank 2, but the equation names 3 axes for it"), std::string::npos);
  EXPECT_NE(refused("ij,ij->q").find("the axis 'q', which no input has"), std::string::npos);
  EXPECT_NE(refused("ij->i").find("its equation names 1 input, but the node has 2"), std::string::npos);
  EXPECT_NE(refused("ij,jk,kl->il").find("its equation names 3 inputs, but the node has 2"), std::string::npos);
}

TEST(ShapeInference, GraftOperatorsAndFunctions) {
  EXPECT_EQ(inferred({n, 4}, "a = graft::L2Normalize(x)\ny = LReLU_TRT<negSlope=0.5>(a)"), "f32[n, 4]");
  onnx::Model model = onnx::read_onnx(golden_folder().string() + "/models/functions.onnx");
  infer_shapes(model);
  for (const onnx::Value* output : model.graph().outputs()) {
    EXPECT_TRUE(output->type && output->shape) << output->name;
  }
  EXPECT_FALSE(model.functions.empty());  // functions are only read
}

TEST(ShapeInference, DeclarationsCountOnlyWhereNothingIsInferred) {
  onnx::Model model = text_model({{"x", onnx::ElementType::f32, Shape{n, 4}}}, "y = custom::Op(x)\nz = Relu(y)", {"z"});
  model.graph().find("y")->type = onnx::ElementType::f16;
  model.graph().find("y")->shape = Shape{n, h};
  model.graph().find("z")->shape = Shape{onnx::unknown_dim(), 7};
  infer_shapes(model);
  EXPECT_EQ(type_text(*model.graph().find("z")), "f16[n, h]");

  onnx::Model open =
      text_model({{"x", onnx::ElementType::f32, Shape{n, h}}}, "a = NonZero(x)\ny = Transpose(a)", {"y"});
  open.graph().find("y")->shape = Shape{7, 2};
  infer_shapes(open);
  EXPECT_EQ(type_text(*open.graph().find("y")), "i64[7, 2]");
}

// The model was exported for one image, and only its inputs were changed to dynamic sizes.
TEST(ShapeInference, StaleDeclarationsGiveWay) {
  onnx::Model model =
      text_model({{"x", onnx::ElementType::f32, Shape{n, 8}}},
                 "a = Relu(x)\nflat = Constant<value=int64([-1])>()\nb = Neg(a)\ny = Reshape(b, flat)", {"y"});
  model.graph().find("a")->shape = Shape{1, 8};
  model.graph().find("b")->shape = Shape{1, 9};
  model.graph().find("y")->shape = Shape{1, 8};
  infer_shapes(model);
  EXPECT_EQ(type_text(*model.graph().find("a")), "f32[n, 8]");
  EXPECT_EQ(type_text(*model.graph().find("b")), "f32[n, 8]");
  EXPECT_EQ(type_text(*model.graph().find("y")), "f32[(n * 8)]");
}

TEST(ShapeInference, GivenInputShapes) {
  onnx::Model model = text_model({{"x", onnx::ElementType::f32, Shape{n, 4}}, {"z", onnx::ElementType::f32, Shape{n}}},
                                 "y = Neg(x)\nw = Neg(z)", {"y", "w"});
  infer_shapes(model);
  infer_shapes(model, {{"x", Shape{5, 4}}});
  EXPECT_EQ(type_text(*model.graph().find("y")), "f32[5, 4]");
  EXPECT_EQ(type_text(*model.graph().find("w")), "f32[5]");  // z has the same symbol n as x
  EXPECT_NE(error_of([&] {
              infer_shapes(model, {{"x", Shape{5, 3}}});
            }).find("input 'x' cannot have the shape [5, 3]"),
            std::string::npos);
  EXPECT_NE(error_of([&] { infer_shapes(model, {{"q", Shape{5}}}); }).find("its inputs are x, z"), std::string::npos);
}

TEST(ShapeInference, GivenShapesBindTheSymbolsOfOtherInputs) {
  const auto other = [](const std::map<std::string, Shape, std::less<>>& given) {
    onnx::Model model = text_model({{"a", onnx::ElementType::f32, Shape{n, 4}},
                                    {"b", onnx::ElementType::f32, Shape{h}},
                                    {"c", onnx::ElementType::f32, Shape{n}},
                                    {"x", onnx::ElementType::f32, Shape{h, n, Dim::symbol("w")}}},
                                   "y = Neg(x)", {"y"});
    infer_shapes(model, given);
    return type_text(*model.graph().find("y"));
  };
  EXPECT_EQ(other({{"a", Shape{5, 4}}, {"b", Shape{6}}}), "f32[6, 5, w]");
  EXPECT_EQ(other({{"b", Shape{n}}}), "f32[n, n, w]");
  EXPECT_EQ(other({{"a", Shape{n, 4}}, {"c", Shape{5}}}), "f32[h, 5, w]");                         // a binds nothing
  EXPECT_EQ(other({{"a", Shape{5, 4}}, {"c", Shape{6}}}), "f32[h, 5, w]");                         // the first counts
  EXPECT_EQ(other({{"a", Shape{5, 4}}, {"b", Shape{6}}, {"x", Shape{6, 7, 8}}}), "f32[6, 7, 8]");  // x itself is given
}

TEST(ShapeInference, ContradictionsNameTheNode) {
  const auto error = [](const Shape& x, const std::string& text) { return error_of([&] { inferred(x, text); }); };
  EXPECT_NE(
      error({2, 3}, "w = Constant<value=float([1, 2])>()\ny = Add(x, w)").find("node 'y' (Add): dimensions 3 and 2"),
      std::string::npos);
  EXPECT_NE(error({2, 3}, "y = MatMul(x, x)")
                .find("node 'y' (MatMul): the left input has 3 columns and the right input has 2 rows"),
            std::string::npos);
  EXPECT_NE(error({2, 3}, "t = Constant<value_ints=[4, -1]>()\ny = Reshape(x, t)").find("6 elements"),
            std::string::npos);
  EXPECT_NE(error({2, 3}, "y = ReduceMean<axes=[2]>(x)").find("axis 2 is out of range; it must be between -2 and 1"),
            std::string::npos);
  EXPECT_NE(error({2, 3}, "y = Transpose<perm=[0]>(x)").find("`perm`"), std::string::npos);
  EXPECT_NE(error({2, 3}, "y = Concat<axis=1.5>(x, x)").find("attribute `axis` has type float; it must have type int"),
            std::string::npos);
  EXPECT_NE(error({INT64_MAX, 3}, "y = Flatten<axis=2>(x)").find("exceeds 64 bits"), std::string::npos);
}

TEST(ShapeInference, ExpressionsDoNotGrowWithoutBound) {
  std::string text = "v0 = Concat<axis=0>(x, x)\n";
  for (int i = 1; i < 60; ++i) {
    text += fmt::format("v{} = Concat<axis=0>(v{}, v{})\n", i, i - 1, i - 1);
  }
  EXPECT_EQ(inferred({n, 4}, text + "y = Neg(v59)"), "f32[?, 4]");
  EXPECT_EQ(inferred({n, 4}, "a = Concat<axis=0>(x, x)\ny = Concat<axis=0>(a, a)"), "f32[((n + n) + (n + n)), 4]");
}

/// Returns a model where "y" is an If of "c": Neg of a tensor [n, 4], or a Concat of two such tensors.
onnx::Model model_of_branches() {
  onnx::Model model = text_model(
      {{"x", onnx::ElementType::f32, Shape{n, 4}}, {"c", onnx::ElementType::boolean, Shape{}}}, "a = Relu(x)", {});
  onnx::Graph& graph = model.graph();
  onnx::Node* node = graph.add_node("If", {graph.find("c")}, {"y"});
  for (const char* text : {"r = Neg(a)", "r = Concat<axis=0>(a, a)"}) {
    auto inner = std::make_unique<onnx::Graph>(&graph);
    parse_nodes(*inner, text, {"r"}, nullptr);
    node->attributes[text[4] == 'N' ? "then_branch" : "else_branch"] =
        onnx::NodeAttribute(onnx::AttributeData(std::move(inner)));
  }
  graph.add_output(*node->output());
  return model;
}

TEST(ShapeInference, Branches) {
  onnx::Model model = model_of_branches();
  infer_shapes(model);
  EXPECT_EQ(type_text(*model.graph().find("y")), "f32[?, 4]");
}

// p and q have the shapes [1, 5] and [4, 5] in ONNX Runtime.
TEST(ShapeInference, TensorsOfASequenceMayDiffer) {
  const std::string indices = "zero = Constant<value=int64(0)>()\none = Constant<value=int64(1)>()\n";
  const std::string both = "p = SequenceAt(s, zero)\nq = SequenceAt(s, one)";
  const std::vector<std::string> texts = {
      "s = SequenceConstruct(a, b)\n" + both,
      "r = SequenceConstruct(b, a, b)\ns = SequenceErase(r, zero)\n" + both,
      "r = SequenceConstruct(b, a)\ns = SequenceInsert(r, a, zero)\nt = Identity(s)\np = SequenceAt(t, zero)\n"
      "q = SequenceAt(t, one)",
      "w = Concat<axis=0>(a, b)\nsizes = Constant<value=int64([1, 4])>()\n"
      "s = SplitToSequence<axis=0>(w, sizes)\n" +
          both,
      "r = SequenceConstruct(a, b)\no = Optional(r)\ns = OptionalGetElement(o)\n" + both,
      "s = SequenceConstruct(a, b)\nc = SequenceErase(s, one)\nd = SequenceErase(s, zero)\n"
      "e = ConcatFromSequence<axis=0, new_axis=1>(c)\nf = ConcatFromSequence<axis=0, new_axis=1>(d)\n"
      "p = Gather(e, zero)\nq = Gather(f, zero)",
  };
  for (const std::string& text : texts) {
    onnx::Model model =
        text_model({{"a", onnx::ElementType::f32, Shape{1, 5}}, {"b", onnx::ElementType::f32, Shape{4, 5}}},
                   indices + text, {"p", "q"});
    infer_shapes(model);
    const onnx::Value& p = *model.graph().find("p");
    const onnx::Value& q = *model.graph().find("q");
    EXPECT_EQ(type_text(p), "f32[?, 5]") << text;
    EXPECT_EQ(type_text(q), "f32[?, 5]") << text;
    ASSERT_TRUE(p.shape && q.shape) << text;
    EXPECT_FALSE(p.shape->front() == q.shape->front()) << text;
  }
}

// ONNX Runtime returns [5, 7] without iterations, and [2, 7] with some.
TEST(ShapeInference, ALoopMayReturnTheSequenceThatItGets) {
  onnx::Model model = text_model({{"x", onnx::ElementType::f32, Shape{2, 7}},
                                  {"first", onnx::ElementType::f32, Shape{5, 7}},
                                  {"count", onnx::ElementType::i64, Shape{}},
                                  {"yes", onnx::ElementType::boolean, Shape{}}},
                                 "before = SequenceConstruct(first)", {});
  onnx::Graph& graph = model.graph();
  onnx::Node* node = graph.add_node("Loop", {graph.find("count"), graph.find("yes"), graph.find("before")}, {"after"});
  auto body = std::make_unique<onnx::Graph>(&graph);
  for (const char* input : {"i", "go", "old"}) body->add_input(input);
  parse_nodes(*body, "on = Identity(go)\nnew = SequenceConstruct(x)", {"on", "new"}, nullptr);
  node->attributes["body"] = onnx::NodeAttribute(onnx::AttributeData(std::move(body)));
  parse_nodes(graph, "zero = Constant<value=int64(0)>()\ny = SequenceAt(after, zero)", {"y"}, nullptr);
  infer_shapes(model);
  EXPECT_EQ(type_text(*graph.find("y")), "f32[?, 7]");
}

// The sizes are those of ONNX Runtime. A carried value has its initial size where the body keeps it; a condition that
// is computed may end the Loop early.
TEST(ShapeInference, ALoopOfAFixedNumberOfIterations) {
  const auto of = [](const std::string& condition, const Shape& initial) {
    onnx::Model model =
        text_model({{"x", onnx::ElementType::f32, Shape{3, 4}}, {"first", onnx::ElementType::f32, initial}},
                   "count = Constant<value=int64(3)>()\nyes = Constant<value=bool(1)>()", {});
    onnx::Graph& graph = model.graph();
    onnx::Node* node =
        graph.add_node("Loop", {graph.find("count"), graph.find("yes"), graph.find("first")}, {"last", "all"});
    auto body = std::make_unique<onnx::Graph>(&graph);
    for (const char* input : {"i", "go", "old"}) body->add_input(input);
    parse_nodes(*body, condition + "\nnew = Relu(x)\neach = Neg(x)", {"on", "new", "each"}, nullptr);
    node->attributes["body"] = onnx::NodeAttribute(onnx::AttributeData(std::move(body)));
    infer_shapes(model);
    const onnx::Value& last = *graph.find("last");
    return (last.shape ? type_text(last) : "?") + " " + type_text(*graph.find("all"));
  };
  EXPECT_EQ(of("on = Identity(go)", {3, 4}), "f32[3, 4] f32[3, 3, 4]");
  EXPECT_EQ(of("on = Not(go)", {3, 4}), "f32[3, 4] f32[?, 3, 4]");
  EXPECT_EQ(of("on = Identity(go)", {4}), "? f32[3, 3, 4]");
}

// The sizes are those of ONNX Runtime.
TEST(ShapeInference, AScanAlongOtherAxes) {
  const auto of = [](const Shape& x, const Shape& first) {
    onnx::Model model =
        text_model({{"x", onnx::ElementType::f32, x}, {"first", onnx::ElementType::f32, first}}, "", {});
    onnx::Graph& graph = model.graph();
    onnx::Node* node = graph.add_node("Scan", {graph.find("first"), graph.find("x")}, {"last", "all"});
    auto body = std::make_unique<onnx::Graph>(&graph);
    for (const char* input : {"old", "element"}) body->add_input(input);
    parse_nodes(*body, "new = Relu(element)\neach = Neg(element)", {"new", "each"}, nullptr);
    node->attributes["body"] = onnx::NodeAttribute(onnx::AttributeData(std::move(body)));
    node->attributes["num_scan_inputs"] = onnx::NodeAttribute(onnx::AttributeData(std::int64_t{1}));
    node->attributes["scan_input_axes"] = onnx::NodeAttribute(onnx::AttributeData(std::vector<std::int64_t>{1}));
    node->attributes["scan_output_axes"] = onnx::NodeAttribute(onnx::AttributeData(std::vector<std::int64_t>{-1}));
    infer_shapes(model);
    const onnx::Value& last = *graph.find("last");
    return (last.shape ? type_text(last) : "?") + " " + type_text(*graph.find("all"));
  };
  EXPECT_EQ(of({3, 5, 4}, {3, 4}), "f32[3, 4] f32[3, 4, 5]");
  EXPECT_EQ(of({n, h, 4}, {n, 4}), "f32[n, 4] f32[n, 4, h]");
  EXPECT_EQ(of({3, 5, 4}, {3, 2}), "f32[3, ?] f32[3, 4, 5]");
}

// The sizes are those of ONNX Runtime.
TEST(ShapeInference, ShortTimeFourierTransform) {
  const std::string constants =
      "step = Constant<value=int64(8)>()\nlength = Constant<value=int64(16)>()\n"
      "w = ConstantOfShape(size)\n";
  const auto of = [&](const Shape& x, const std::string& line) {
    return inferred(x, "size = Constant<value=int64([16])>()\n" + constants + line);
  };
  EXPECT_EQ(of({1, 64, 1}, "y = STFT(x, step, w)"), "f32[1, 7, 9, 2]");
  EXPECT_EQ(of({n, 67, 1}, "y = STFT(x, step, _, length)"), "f32[n, 7, 9, 2]");
  EXPECT_EQ(of({1, 64, 1}, "y = STFT<onesided=0>(x, step, w)"), "f32[1, 7, 16, 2]");
  EXPECT_EQ(of({1, h, 1}, "y = STFT(x, step, w)"), "f32[1, ?, 9, 2]");
}

// In the first run of the body, p has the shape [4, 5] and q has [1, 5].
TEST(ShapeInference, TensorsOfMappedSequencesMayDiffer) {
  onnx::Model model =
      text_model({{"a", onnx::ElementType::f32, Shape{1, 5}}, {"b", onnx::ElementType::f32, Shape{4, 5}}},
                 "zero = Constant<value=int64(0)>()\none = Constant<value=int64(1)>()\n"
                 "s = SequenceConstruct(a, b, a)\nc = SequenceErase(s, zero)\nd = SequenceErase(s, one)",
                 {});
  onnx::Graph& graph = model.graph();
  onnx::Node* node = graph.add_node("SequenceMap", {graph.find("c"), graph.find("d")}, {"y"});
  auto body = std::make_unique<onnx::Graph>(&graph);
  const onnx::Value* p = body->add_input("p");
  const onnx::Value* q = body->add_input("q");
  parse_nodes(*body, "r = Add(p, q)", {"r"}, nullptr);
  node->attributes["body"] = onnx::NodeAttribute(onnx::AttributeData(std::move(body)));
  graph.add_output(*node->output());
  infer_shapes(model);
  EXPECT_EQ(type_text(*p), "f32[?, 5]");
  ASSERT_TRUE(p->shape && q->shape);
  EXPECT_FALSE(p->shape->front() == q->shape->front());
}

TEST(ShapeInference, BranchesOfAConstantCondition) {
  for (const bool condition : {false, true}) {
    onnx::Model model = model_of_branches();
    onnx::Graph& graph = model.graph();
    onnx::Value& c = *graph.find("c");
    graph.set_is_input(c, false);
    graph.set_initializer(
        c, onnx::TensorData::from_numbers(onnx::ElementType::boolean, {}, std::vector<double>{condition ? 1.0 : 0.0}));
    infer_shapes(model);
    EXPECT_EQ(type_text(*graph.find("y")), condition ? "f32[n, 4]" : "f32[(n + n), 4]");
  }
}

TEST(ShapeInference, ABranchThatTheSizesContradictIsNotTaken) {
  const auto branches = [](const char* one, const char* other) {
    onnx::Model model = text_model(
        {{"x", onnx::ElementType::f32, Shape{3, 4}}, {"c", onnx::ElementType::boolean, Shape{}}}, "a = Relu(x)", {});
    onnx::Graph& graph = model.graph();
    onnx::Node* node = graph.add_node("If", {graph.find("c")}, {"y"});
    for (const auto& [attribute, text] : {std::pair{"then_branch", one}, std::pair{"else_branch", other}}) {
      auto inner = std::make_unique<onnx::Graph>(&graph);
      parse_nodes(*inner, text, {"r"}, nullptr);
      node->attributes[attribute] = onnx::NodeAttribute(onnx::AttributeData(std::move(inner)));
    }
    graph.add_output(*node->output());
    return model;
  };
  const char* const squeeze = "axes = Constant<value_ints=[0]>()\nr = Squeeze(a, axes)";
  for (const bool first : {false, true}) {
    onnx::Model model = first ? branches(squeeze, "r = Neg(a)") : branches("r = Neg(a)", squeeze);
    infer_shapes(model);
    EXPECT_EQ(type_text(*model.graph().find("y")), "f32[3, 4]");
  }
  onnx::Model neither = branches(squeeze, squeeze);
  EXPECT_THROW(infer_shapes(neither), Error);

  // The search for faults reports the If: TensorRT-RTX 1.7 refuses it unless its condition is constant.
  std::vector<std::string> faulty;
  onnx::Model model = branches(squeeze, "r = Neg(a)");
  infer_around_faults(model, [&](onnx::Node& node, const Error&) { faulty.push_back(node.op_type); });
  EXPECT_EQ(faulty, std::vector<std::string>{"Squeeze"});
}

}  // namespace
}  // namespace graft::test

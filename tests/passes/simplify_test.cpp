// Tests passes that fold and merge: computed shapes, transpositions before matrices, pads, equal nodes.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "passes/passes.hpp"
#include "passes/pipeline.hpp"
#include "passes/rewriter.hpp"
#include "runtime/default_engine.hpp"
#include "tests/passes/models.hpp"

namespace graft::passes::simplify_test {
namespace {

using runtime::default_engine;
using test::count_of;
using test::inferred_text_model;
using test::op_types;
using test::TextInput;

using testing::ElementsAre;
using testing::HasSubstr;

struct Converted {
  onnx::Model model;
  RewriteReport report;
};

Converted converted(const std::vector<TextInput>& inputs, const std::string& nodes,
                    const std::vector<std::string>& outputs = {"y"}) {
  Converted result{inferred_text_model(inputs, nodes, outputs), {}};
  result.report = convert_and_verify(result.model);
  onnx::Model again = result.model.clone();
  const RewriteReport second = convert(runtime::default_engine(), again);
  EXPECT_TRUE(second.rewrites.empty()) << second.rewrites.front().pass << ": " << second.rewrites.front().replacement;
  return result;
}

std::string reasons(const RewriteReport& report) {
  std::string text;
  for (const NearMiss& note : report.near_misses) text += note.pattern + ": " + note.reason + "\n";
  return text;
}

const std::vector<TextInput> image = {{"x", onnx::ElementType::f32, image_shape()}};
const std::vector<TextInput> open_image = {
    {"x", onnx::ElementType::f32, {Dim::symbol("N"), 4, Dim::symbol("H"), Dim::symbol("W")}}};
const std::vector<TextInput> nhwc = {{"x", onnx::ElementType::f32, {Dim::symbol("N"), 3, 5, 4}}};

std::vector<std::int64_t> shape_given_to(const onnx::Model& model, const std::string& op_type) {
  for (const onnx::Node* node : model.graph().nodes()) {
    if (node->is(op_type)) return node->input(1)->constant()->ints().value();
  }
  return {};
}

// ---- simplify_shapes

// PyTorch's x.view(x.size(0), -1), with the batch size read from the tensor.
constexpr auto flat_as_pytorch_writes_it =
    "e = Exp(x)\ns = Shape(e)\nzero = Constant<value=int64(0)>()\nn = Gather<axis=0>(s, zero)\n"
    "first = Constant<value=int64([0])>()\nu = Unsqueeze(n, first)\nrest = Constant<value=int64([-1])>()\n"
    "t = Concat<axis=0>(u, rest)\ny = Reshape(e, t)";

TEST(SimplifyShapes, OneOpenDimensionIsWhatIsLeft) {
  const auto found = converted(image, flat_as_pytorch_writes_it);
  EXPECT_THAT(op_types(found.model.graph()), ElementsAre("Exp", "Reshape"));
  EXPECT_THAT(shape_given_to(found.model, "Reshape"), ElementsAre(-1, 60));
}

TEST(SimplifyShapes, OpenDimensionsInTheirPlaceAreCopied) {
  // [N, C, H, W] is reshaped to [N, 2, C / 2, H, W] and back by the sizes of x: [N, 4, H, W], where two sizes are
  // copied.
  const auto found =
      converted(open_image,
                "e = Exp(x)\ns = Shape(e)\nl = Constant<value=int64([0])>()\nm = Constant<value=int64([2])>()\n"
                "a = Constant<value=int64([0])>()\nh = Slice(s, l, m, a)\nrest = Constant<value=int64([-1])>()\n"
                "t = Concat<axis=0>(h, rest)\ny = Reshape(e, t)");
  EXPECT_THAT(op_types(found.model.graph()), ElementsAre("Exp", "Reshape"));
  EXPECT_THAT(shape_given_to(found.model, "Reshape"), ElementsAre(0, 4, -1));
}

// A Reshape to [0, -1] fails for a batch of 0, with which Unsqueeze and Flatten run.
TEST(SimplifyShapes, NotASizeToInferNextToACopiedOneThatMayBeZero) {
  const std::string flat = "e = Exp(x)\none = Constant<value=int64([1])>()\nu = Unsqueeze(e, one)\n";
  EXPECT_THAT(op_types(converted(open_image, flat + "y = Flatten<axis=1>(u)").model.graph()),
              ElementsAre("Exp", "Unsqueeze", "Flatten"));
}

TEST(SimplifyShapes, NotWhereTwoDimensionsMove) {
  const auto found = converted(open_image,
                               "e = Exp(x)\ns = Shape(e)\norder = Constant<value=int64([2, 0, 1, 3])>()\n"
                               "t = Gather<axis=0>(s, order)\ny = Reshape(e, t)");
  EXPECT_EQ(count_of(found.model, "Gather"), 1U);
}

TEST(SimplifyShapes, NotFromAShapeOfAnotherTensor) {
  onnx::Model model = inferred_text_model({{"x", onnx::ElementType::f32, {Dim::symbol("N"), 8}},
                                           {"z", onnx::ElementType::f32, {Dim::symbol("M"), Dim::symbol("K")}}},
                                          "s = Shape(z)\ny = Reshape(x, s)", {"y"});
  convert(runtime::default_engine(), model);
  EXPECT_EQ(count_of(model, "Shape"), 1U);
}

// A reshape of [N, A, B] to [N, 12] is valid for some A and B only, which the model does not declare.
TEST(SimplifyShapes, NotWhereTheReshapeDemandsASize) {
  onnx::Model model =
      inferred_text_model({{"x", onnx::ElementType::f32, {Dim::symbol("N"), Dim::symbol("A"), Dim::symbol("B")}}},
                          "s = Shape<end=1>(x)\nk = Constant<value=int64([12])>()\nd = Concat<axis=0>(s, k)\n"
                          "y = Reshape(x, d)",
                          {"y"});
  const RewriteReport report = convert(runtime::default_engine(), model);
  EXPECT_EQ(count_of(model, "Shape"), 1U);
  EXPECT_TRUE(report.rejected.empty());
}

TEST(SimplifyShapes, ReshapesInARowBecomeOne) {
  const auto found = converted(image,
                               "e = Exp(x)\na = Constant<value=int64([0, 2, 2, 15])>()\nr = Reshape(e, a)\n"
                               "one = Constant<value=int64([1])>()\nu = Unsqueeze(r, one)\nf = Flatten<axis=1>(u)\n"
                               "b = Constant<value=int64([0, 12, 5])>()\nt = Reshape(f, b)\ny = Log(t)");
  EXPECT_THAT(op_types(found.model.graph()), ElementsAre("Exp", "Reshape", "Log"));
  EXPECT_THAT(shape_given_to(found.model, "Reshape"), ElementsAre(-1, 12, 5));
}

TEST(SimplifyShapes, ThereAndBackIsNothing) {
  const auto found = converted(image,
                               "e = Exp(x)\na = Constant<value=int64([0, 60])>()\nr = Reshape(e, a)\n"
                               "b = Constant<value=int64([-1, 4, 3, 5])>()\nt = Reshape(r, b)\ny = Log(t)");
  EXPECT_THAT(op_types(found.model.graph()), ElementsAre("Exp", "Log"));
}

TEST(SimplifyShapes, ExpandAndTileByKnownSizes) {
  const auto found = converted({{"x", onnx::ElementType::f32, {Dim::symbol("N"), 1, 5}},
                                {"z", onnx::ElementType::f32, {Dim::symbol("N"), 3, 5}}},
                               "s = Shape(z)\ne = Expand(x, s)\ny = Add(e, z)");
  EXPECT_THAT(op_types(found.model.graph()), ElementsAre("Expand", "Add"));
  EXPECT_THAT(shape_given_to(found.model, "Expand"), ElementsAre(1, 3, 1));
  const auto other = converted({{"x", onnx::ElementType::f32, {Dim::symbol("N"), 1, 5}},
                                {"z", onnx::ElementType::f32, {Dim::symbol("M"), 3, 5}}},
                               "s = Shape(z)\ny = Expand(x, s)");
  EXPECT_EQ(count_of(other.model, "Shape"), 1U);
}

// ---- fold_transposes

/// Returns a matrix with distinct elements.
std::string matrix(const std::string& name, int rows, int columns) {
  std::string numbers;
  for (int i = 0; i < rows * columns; ++i)
    numbers += fmt::format("{}{:.3f}", i == 0 ? "" : ", ", 0.013 * ((i * 37) % 101) - 0.5);
  return fmt::format(
      "{0}_flat = Constant<value=float([{1}])>()\n{0}_dims = Constant<value=int64([{2}, {3}])>()\n"
      "{0} = Reshape({0}_flat, {0}_dims)\n",
      name, numbers, rows, columns);
}

TEST(FoldTransposes, FlattenedChannelsLastKeepTheirTrainedOrder) {
  const auto found = converted(image,
                               matrix("a", 60, 3) + matrix("b", 2, 60) +
                                   "t = Transpose<perm=[0, 2, 3, 1]>(x)\nf = Flatten<axis=1>(t)\n"
                                   "p = MatMul(f, a)\nq = Gemm<transB=1>(f, b)\nr = Relu(p)\n",
                               {"r", "q"});
  EXPECT_EQ(found.report.count("fold_transposes"), 1U);
  EXPECT_EQ(count_of(found.model, "Transpose"), 0U);
  EXPECT_EQ(count_of(found.model, "Flatten"), 1U);
  // Element 1 of x is channel 0 of pixel (0, 1), which is row 4 of the trained matrix; its first element is element 12
  // of a.
  for (const onnx::Node* node : found.model.graph().nodes()) {
    if (!node->is("MatMul")) continue;
    const auto numbers = node->input(1)->constant()->numbers().value();
    EXPECT_FLOAT_EQ(numbers[3], 0.013 * ((12 * 37) % 101) - 0.5);
  }
}

TEST(FoldTransposes, AReshapeThatReadsTheBatchFromTheTensor) {
  const auto found =
      converted(image, matrix("a", 60, 3) +
                           "t = Transpose<perm=[0, 2, 3, 1]>(x)\ns = Shape(t)\nzero = Constant<value=int64([0])>()\n"
                           "n = Gather<axis=0>(s, zero)\nk = Constant<value=int64([60])>()\nd = Concat<axis=0>(n, k)\n"
                           "f = Reshape(t, d)\ny = MatMul(f, a)\n");
  EXPECT_EQ(count_of(found.model, "Transpose"), 0U);
  EXPECT_EQ(count_of(found.model, "Shape"), 0U);
}

TEST(FoldTransposes, NotWhereSomethingElseReadsTheFlatNumbers) {
  const auto found =
      converted(image,
                matrix("a", 60, 3) +
                    "t = Transpose<perm=[0, 2, 3, 1]>(x)\nf = Flatten<axis=1>(t)\ny = MatMul(f, a)\nz = Softmax(f)\n",
                {"y", "z"});
  EXPECT_EQ(count_of(found.model, "Transpose"), 1U);
  EXPECT_THAT(reasons(found.report), HasSubstr("(Softmax) also reads the flattened tensor"));
}

TEST(FoldTransposes, NotWithAMatrixFromOutside) {
  const auto found = converted({{"x", onnx::ElementType::f32, image_shape()}, {"a", onnx::ElementType::f32, {60, 3}}},
                               "t = Transpose<perm=[0, 2, 3, 1]>(x)\nf = Flatten<axis=1>(t)\ny = MatMul(f, a)\n");
  EXPECT_EQ(count_of(found.model, "Transpose"), 1U);
  EXPECT_THAT(reasons(found.report), HasSubstr("is not a constant"));
}

TEST(FoldTransposes, NotWithAMatrixThatIsNeededElsewhere) {
  const auto found =
      converted({{"x", onnx::ElementType::f32, image_shape()}, {"z", onnx::ElementType::f32, {2, 60}}},
                matrix("a", 60, 3) +
                    "t = Transpose<perm=[0, 2, 3, 1]>(x)\nf = Flatten<axis=1>(t)\ny = MatMul(f, a)\nu = MatMul(z, a)\n",
                {"y", "u"});
  EXPECT_EQ(count_of(found.model, "Transpose"), 1U);
  EXPECT_THAT(reasons(found.report), HasSubstr("'a' is also read by other nodes"));
}

TEST(FoldTransposes, NotWhereHeightIsOpen) {
  onnx::Model model =
      inferred_text_model({{"x", onnx::ElementType::f32, {Dim::symbol("N"), 4, Dim::symbol("H"), 5}}},
                          matrix("a", 60, 3) +
                              "t = Transpose<perm=[0, 2, 3, 1]>(x)\nd = Constant<value=int64([-1, 60])>()\n"
                              "f = Reshape(t, d)\ny = MatMul(f, a)\n",
                          {"y"});
  convert(runtime::default_engine(), model);
  EXPECT_EQ(count_of(model, "Transpose"), 1U);
}

// ---- fold_pads

std::string padded(const std::string& begin, const std::string& value, const std::string& layer) {
  return "p = Constant<value=int64([0, 0, 1, 0, 0, 0, 0, 2])>()\nv = Constant<value=float(" + value + ")>()\n" + begin +
         "h = Pad(b, p, v)\n" + layer;
}
const std::string kernel =
    "w = Constant<value=float([1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0, 8.0, 7.0, 6.0])>()\n"
    "d = Constant<value=int64([1, 4, 1, 3])>()\nk = Reshape(w, d)\ny = Conv(h, k)";

TEST(FoldPads, ZerosBeforeAConvolution) {
  const auto found = converted(open_image, padded("b = Exp(x)\n", "0.0", kernel));
  EXPECT_THAT(op_types(found.model.graph()), ElementsAre("Exp", "Conv"));
  EXPECT_THAT(found.model.graph().nodes()[1]->ints("pads").value(), ElementsAre(1, 0, 0, 2));
}

TEST(FoldPads, NotOnesBeforeAConvolution) {
  const auto found = converted(image, padded("b = Exp(x)\n", "1.0", kernel));
  EXPECT_EQ(count_of(found.model, "Pad"), 1U);
  EXPECT_THAT(reasons(found.report), HasSubstr("fills in 1, but a convolution pads with 0"));
}

TEST(FoldPads, AnAverageThatCountsTheZeros) {
  const auto found = converted(image, padded("b = Exp(x)\n", "0.0", "y = AveragePool<kernel_shape=[2, 3]>(h)"));
  EXPECT_THAT(op_types(found.model.graph()), ElementsAre("Exp", "AveragePool"));
  EXPECT_EQ(found.model.graph().nodes()[1]->int_or("count_include_pad", 0), 1);
  const auto other =
      converted(image, padded("b = Exp(x)\n", "0.0", "y = AveragePool<kernel_shape=[2, 3], pads=[0, 1, 0, 0]>(h)"));
  EXPECT_EQ(count_of(other.model, "Pad"), 1U);
  EXPECT_THAT(reasons(other.report), HasSubstr("but not the zeros of its own padding"));
}

TEST(FoldPads, AMaximumWithNumbersThatAreNotNegative) {
  const std::string pool = "y = MaxPool<kernel_shape=[2, 3]>(h)";
  EXPECT_EQ(count_of(converted(image, padded("b = Relu(x)\n", "0.0", pool)).model, "Pad"), 0U);
  EXPECT_EQ(count_of(converted(image, padded("b = Softplus(x)\n", "0.0", pool)).model, "Pad"), 0U);
  const auto negative = converted(image, padded("b = Neg(x)\n", "0.0", pool));
  EXPECT_EQ(count_of(negative.model, "Pad"), 1U);
  EXPECT_THAT(reasons(negative.report), HasSubstr("can be larger than the elements next to it"));
  const auto alone = converted(image, padded("b = Relu(x)\n", "0.0", "y = MaxPool<kernel_shape=[2, 2]>(h)"));
  EXPECT_EQ(count_of(alone.model, "Pad"), 1U);
  EXPECT_THAT(reasons(alone.report), HasSubstr("entirely in the padding"));
}

TEST(FoldPads, NotMirrors) {
  const auto found = converted(image,
                               "b = Exp(x)\np = Constant<value=int64([0, 0, 1, 0, 0, 0, 0, 2])>()\n"
                               "h = Pad<mode=\"reflect\">(b, p)\n" +
                                   kernel);
  EXPECT_EQ(count_of(found.model, "Pad"), 1U);
  EXPECT_THAT(reasons(found.report), HasSubstr("the mode of the Pad is reflect"));
}

// ---- unwrap_pads

/// Returns F.pad of an image as paddle2onnx writes it.
std::string wrapped(const std::string& pads, const std::string& pad, const std::string& squeezed = "2") {
  return "i = Constant<value=int64([2])>()\no = Constant<value=int64([" + squeezed +
         "])>()\np = Constant<value=int64([" + pads + "])>()\nv = Constant<value=float(0.5)>()\n" +
         "b = Exp(x)\nu = Unsqueeze(b, i)\nh = " + pad + "\ny = Squeeze(h, o)";
}
const std::string border_of_columns = "0, 0, 0, 1, 2, 0, 0, 0, 1, 1";

TEST(UnwrapPads, OfAnImageThatIsMadeAVolume) {
  const std::vector<TextInput> any_size = {
      {"x", onnx::ElementType::f32, {Dim::symbol("N"), 4, Dim::symbol("H"), Dim::symbol("W")}}};
  for (const auto& inputs : {image, open_image, any_size}) {
    for (const std::string mode : {"constant", "reflect", "edge"}) {
      SCOPED_TRACE(mode);
      const auto found = converted(inputs, wrapped(border_of_columns, "Pad<mode=\"" + mode + "\">(u, p, v)"));
      ASSERT_THAT(op_types(found.model.graph()), ElementsAre("Exp", "Pad"));
      const onnx::Node& pad = *found.model.graph().nodes()[1];
      EXPECT_EQ(pad.string_or("mode", ""), mode);
      EXPECT_THAT(pad.input(1)->constant()->ints().value(), ElementsAre(0, 0, 1, 2, 0, 0, 1, 1));
      EXPECT_EQ(pad.input(2)->constant()->scalar(), 0.5);
    }
  }
}

TEST(UnwrapPads, WhatItCropsToo) {
  const auto found = converted(image, wrapped("0, 0, 0, -1, 2, 0, -1, 0, 0, -1", "Pad(u, p, v)"));
  ASSERT_THAT(op_types(found.model.graph()), ElementsAre("Exp", "Pad"));
  EXPECT_THAT(found.model.graph().nodes()[1]->input(1)->constant()->ints().value(),
              ElementsAre(0, 0, -1, 2, 0, -1, 0, -1));
}

TEST(UnwrapPads, ByAxesThatCountFromTheEnd) {
  const auto found = converted(image, wrapped(border_of_columns, "Pad(u, p, v)", "-3"));
  EXPECT_THAT(op_types(found.model.graph()), ElementsAre("Exp", "Pad"));
}

TEST(UnwrapPads, ThenTheConvolutionPads) {
  const auto found = converted(open_image,
                               "i = Constant<value=int64([2])>()\nb = Exp(x)\nu = Unsqueeze(b, i)\n"
                               "p = Constant<value=int64([0, 0, 0, 1, 0, 0, 0, 0, 0, 2])>()\ng = Pad(u, p)\n"
                               "h = Squeeze(g, i)\n" +
                                   kernel);
  EXPECT_THAT(op_types(found.model.graph()), ElementsAre("Exp", "Conv"));
}

TEST(UnwrapPads, NotOtherAxesNorThoseThatArePadded) {
  const auto keeps_unsqueeze = [](const std::string& nodes, const std::vector<TextInput>& inputs = image) {
    onnx::Model model = inferred_text_model(inputs, nodes, {"y"});
    const RewriteReport report = convert(runtime::default_engine(), model);
    EXPECT_EQ(report.count("unwrap_pads"), 0U);
    EXPECT_TRUE(report.rejected.empty());
    return count_of(model, "Unsqueeze") == 1U;
  };
  // Axis 0 of a batch of one has one element as well.
  const std::vector<TextInput> one = {{"x", onnx::ElementType::f32, {1, 4, 3, 5}}};
  EXPECT_TRUE(keeps_unsqueeze(wrapped(border_of_columns, "Pad(u, p, v)", "0"), one));
  // The pad adds two elements, and the crop leaves one of them.
  EXPECT_TRUE(keeps_unsqueeze(wrapped("0, 0, 2, 1, 2, 0, 0, -2, 1, 1", "Pad(u, p, v)")));
  // The fill value, or the amount of padding, is known only at run time.
  const std::vector<TextInput> filled = {image[0], {"f", onnx::ElementType::f32, {}}};
  EXPECT_TRUE(keeps_unsqueeze(wrapped(border_of_columns, "Pad(u, p, f)"), filled));
  const std::vector<TextInput> sized = {image[0], {"s", onnx::ElementType::i64, {10}}};
  EXPECT_TRUE(keeps_unsqueeze(wrapped(border_of_columns, "Pad(u, s, v)"), sized));
}

TEST(UnwrapPads, NotWhereTheVolumeIsNeeded) {
  onnx::Model model =
      inferred_text_model(image, wrapped(border_of_columns, "Pad(u, p, v)") + "\nz = Neg(h)", {"y", "z"});
  const RewriteReport report = convert(runtime::default_engine(), model);
  EXPECT_EQ(report.count("unwrap_pads"), 0U);
  onnx::Model output = inferred_text_model(image, wrapped(border_of_columns, "Pad(u, p, v)"), {"y", "h"});
  EXPECT_EQ(convert(runtime::default_engine(), output).count("unwrap_pads"), 0U);
}

TEST(UnwrapPads, NotThePadsOfSomeAxes) {
  const std::string nodes =
      "i = Constant<value=int64([2])>()\nb = Exp(x)\nu = Unsqueeze(b, i)\np = Constant<value=int64([1, 2, 1, 1])>()\n"
      "c = Constant<value=int64([3, 4])>()\nv = Constant<value=float(0.5)>()\nh = Pad(u, p, v, c)\ny = Squeeze(h, i)\n";
  onnx::Model model = inferred_text_model(image, nodes, {"y"}, 18);
  const RewriteReport report = convert(runtime::default_engine(), model);
  EXPECT_EQ(report.count("unwrap_pads"), 0U);
  EXPECT_TRUE(report.rejected.empty());
}

TEST(UnwrapPads, OfOlderOperatorSets) {
  const std::string nodes =
      "b = Exp(x)\nu = Unsqueeze<axes=[2]>(b)\nh = Pad<pads=[0, 0, 0, 1, 2, 0, 0, 0, 1, 1]>(u)\n"
      "y = Squeeze<axes=[2]>(h)\n";
  onnx::Model model = inferred_text_model(image, nodes, {"y"}, 9);
  convert(runtime::default_engine(), model);
  EXPECT_THAT(op_types(model.graph()), ElementsAre("Exp", "Pad"));
}

// ---- merge_equal_nodes

TEST(MergeEqualNodes, OneOfTwoStays) {
  const auto found =
      converted(image,
                "a = Softmax<axis=1>(x)\nb = Softmax<axis=1>(x)\nc = Softmax<axis=2>(x)\n"
                "k = Constant<value=float(2.0)>()\nl = Constant<value=float(2.0)>()\nm = Constant<value=float(3.0)>()\n"
                "d = Pow(a, k)\ne = Pow(b, l)\nf = Pow(b, m)\ng = Sub(d, f)\nh = Sub(e, c)\ny = Sub(g, h)");
  EXPECT_EQ(count_of(found.model, "Softmax"), 2U);
  EXPECT_EQ(count_of(found.model, "Pow"), 2U);
  EXPECT_EQ(found.report.count("merge_equal_nodes"), 2U);
}

TEST(MergeEqualNodes, NotRandomNumbersNorOutputs) {
  onnx::Model model = inferred_text_model(
      image, "a = RandomNormalLike(x)\nb = RandomNormalLike(x)\nc = Sub(a, b)\ny = Exp(c)\nz = Exp(c)\n", {"y", "z"});
  convert(runtime::default_engine(), model);
  EXPECT_EQ(count_of(model, "RandomNormalLike"), 2U);
  EXPECT_EQ(count_of(model, "Exp"), 2U);
}

TEST(MergeEqualNodes, NotWhatNobodyKnows) {
  // Plugins of other libraries may have a state, whether or not they have a domain of their own.
  onnx::Model model =
      inferred_text_model(image,
                          "a = custom::Counter(x)\nb = custom::Counter(x)\nc = Counter(x)\nd = Counter(x)\n"
                          "e = Sub(a, b)\nf = Sub(c, d)\ny = Add(e, f)\n",
                          {"y"});
  convert(runtime::default_engine(), model);
  EXPECT_EQ(count_of(model, "Counter"), 4U);
}

TEST(MergeEqualNodes, FunctionsByWhatTheyAreMadeOf) {
  for (const bool random : {false, true}) {
    onnx::Model model =
        inferred_text_model(image, "a = own::Outer(x)\nb = own::Outer(x)\nc = Sub(a, b)\ny = Exp(c)\n", {"y"});
    const auto add_function = [&](const std::string& name, const std::string& nodes) {
      onnx::FunctionDefinition function;
      function.key = {"own", name, ""};
      function.body->opset_imports = {{"", 17}, {"own", 1}};
      function.body->add_input("x");
      parse_nodes(*function.body, nodes, {"y"}, [](std::string_view) { return std::optional<AttributeType>{}; });
      model.functions.emplace(function.key, std::move(function));
    };
    add_function("Outer", "z = own::Inner(x)\nk = Constant<value=float(2.0)>()\ny = Mul(z, k)");
    add_function("Inner", random ? "y = RandomNormalLike(x)" : "y = Softmax<axis=1>(x)");
    model.graph().opset_imports["own"] = 1;
    RewriteReport report;
    const ConvertOptions options;
    Rewriter rewriter(runtime::default_engine(), model, options, report);
    rewriter.begin("merge_equal_nodes");
    merge_equal_nodes(rewriter);
    EXPECT_EQ(report.rewrites.size(), random ? 0U : 1U);
  }
}

TEST(MergeEqualNodes, TextInAttributesIsDelimited) {
  // Without lengths the one attribute of the first reads as the two of the second.
  onnx::Model model =
      inferred_text_model(image, "a = Softmax<axis=1>(x)\nb = Softmax<axis=1>(x)\ny = Sub(a, b)\n", {"y"});
  const std::vector<onnx::Node*> nodes = model.graph().nodes();
  for (onnx::Node* node : {nodes[0], nodes[1]}) node->attributes.clear();
  nodes[0]->attributes.emplace("a", onnx::NodeAttribute(onnx::AttributeData(std::string("1\"|b=2:\"2"))));
  nodes[1]->attributes.emplace("a", onnx::NodeAttribute(onnx::AttributeData(std::string("1"))));
  nodes[1]->attributes.emplace("b", onnx::NodeAttribute(onnx::AttributeData(std::string("2"))));
  RewriteReport report;
  const ConvertOptions options;
  Rewriter rewriter(runtime::default_engine(), model, options, report);
  rewriter.begin("merge_equal_nodes");
  merge_equal_nodes(rewriter);
  EXPECT_TRUE(report.rewrites.empty());
}

}  // namespace
}  // namespace graft::passes::simplify_test

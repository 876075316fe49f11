// Tests inlining, the text of function bodies, and how functions are attached to and detached from Graft's nodes.
#include "onnx/functions.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "graft/operator/registry.hpp"
#include "onnx/onnx_io.hpp"
#include "onnx/operator_bodies.hpp"
#include "onnx/operator_node.hpp"
#include "onnx/opset.hpp"
#include "onnx/text.hpp"
#include "tests/support/text_model.hpp"

namespace graft::test {
namespace {

void add_function(onnx::Model& model, const std::string& name, const std::vector<std::string>& inputs,
                  const std::string& text, const std::vector<std::string>& attributes = {}, std::int64_t opset = 17) {
  onnx::FunctionDefinition function;
  function.key = {"local", name, ""};
  function.attributes = attributes;
  function.body->opset_imports = {{"", opset}, {"local", 1}};
  for (const std::string& input : inputs) function.body->add_input(input);
  parse_nodes(*function.body, text, {"y"}, [](std::string_view) { return std::optional(AttributeType::float_number); });
  const onnx::FunctionKey key = function.key;
  model.functions.emplace(key, std::move(function));
  model.graph().opset_imports["local"] = 1;
}

std::vector<std::string> op_types(const onnx::Model& model) {
  std::vector<std::string> types;
  for (const onnx::Node* node : model.graph().nodes()) types.push_back(node->op_type);
  return types;
}

TEST(Functions, NestedCallsAndReferences) {
  onnx::Model model = text_model({{"x"}}, "a = local::Outer<alpha=0.25>(x)\nb = local::Outer<alpha=0.5>(a)", {"b"});
  add_function(model, "Inner", {"x"}, "y = LeakyRelu<alpha=@slope>(x)", {"slope"});
  add_function(model, "Outer", {"x"}, "t = local::Inner<slope=@alpha>(x)\ny = Neg(t)", {"alpha"});
  add_function(model, "Unused", {"x"}, "y = Abs(x)");
  EXPECT_EQ(inline_functions(model), 4U);
  model.graph().check();
  EXPECT_TRUE(model.functions.empty());
  EXPECT_EQ(op_types(model), (std::vector<std::string>{"LeakyRelu", "Neg", "LeakyRelu", "Neg"}));
  EXPECT_EQ(model.graph().nodes()[0]->float_or("alpha", 0), 0.25F);
  EXPECT_EQ(model.graph().nodes()[2]->float_or("alpha", 0), 0.5F);
  EXPECT_EQ(model.graph().outputs()[0]->name, "b");
  EXPECT_NE(model.graph().find("a"), nullptr);
}

TEST(Functions, EachNodeHasItsOwnName) {
  onnx::Model model = text_model({{"x"}}, "y = local::F(x)", {"y"});
  model.graph().nodes()[0]->name = "call";
  add_function(model, "F", {"x"}, "s = Neg(x)\nt = Neg(s)\ny = Neg(t)");
  inline_functions(model);
  std::vector<std::string> names;
  for (const onnx::Node* node : model.graph().nodes()) names.push_back(node->name);
  EXPECT_EQ(names, (std::vector<std::string>{"call/Neg", "call/Neg~1", "call/Neg~2"}));
}

TEST(Functions, ARequiredInputThatTheCallLeavesOut) {
  onnx::Model model = text_model({{"x"}}, "y = local::F(x)", {"y"});
  add_function(model, "F", {"x", "divisor"}, "y = Mod(x, divisor)");
  EXPECT_EQ(error_of([&] { inline_functions(model); }),
            "node 'y' (local::F): in the function local::F, node 'y' (Mod): Mod takes 2 inputs, but the node has 1");
}

/// Names of inlined nodes grow with each call in a call, up to a limit.
TEST(Functions, AChainKeepsNamesShortAndDifferent) {
  onnx::Model model = text_model({{"x"}}, "a = local::F0(x)\ny = local::F0(a)", {"y"});
  constexpr int length = 1000;
  for (int i = 0; i < length; ++i) {
    add_function(model, "F" + std::to_string(i), {"x"}, "y = local::F" + std::to_string(i + 1) + "(x)");
  }
  add_function(model, "F" + std::to_string(length), {"x"}, "t = Neg(x)\ny = Abs(t)");
  inline_functions(model);
  std::set<std::string> names;
  for (const onnx::Node* node : model.graph().nodes()) {
    names.insert(node->name);
    EXPECT_LT(node->name.size(), 1100U);
    for (const onnx::Value* output : node->outputs) EXPECT_LT(output->name.size(), 1100U);
  }
  EXPECT_EQ(names.size(), 4U);
}

TEST(Functions, DefaultsOfAttributesAndAbsentOnes) {
  onnx::Model model = text_model({{"x"}}, "y = local::F(x)", {"y"});
  add_function(model, "F", {"x"}, "t = LeakyRelu<alpha=@with>(x)\ny = Elu<alpha=@without>(t)", {"without"});
  model.functions.begin()->second.attribute_defaults["with"] = onnx::NodeAttribute(onnx::AttributeData(0.75F));
  inline_functions(model);
  EXPECT_EQ(model.graph().nodes()[0]->float_or("alpha", 0), 0.75F);
  EXPECT_EQ(model.graph().nodes()[1]->attribute("alpha"), nullptr);
}

TEST(Functions, OnlyTheChosenOnes) {
  onnx::Model model = text_model({{"x"}}, "a = local::F(x)\ny = local::G(a)", {"y"});
  add_function(model, "F", {"x"}, "y = Abs(x)");
  add_function(model, "G", {"x"}, "t = local::F(x)\ny = Neg(t)");
  onnx::InlineOptions options;
  options.which = [](const onnx::FunctionKey& key) { return key.name == "F"; };
  inline_functions(model, options);
  EXPECT_EQ(op_types(model), (std::vector<std::string>{"Abs", "G"}));
  ASSERT_EQ(model.functions.size(), 1U);
  EXPECT_EQ(model.functions.begin()->second.body->nodes()[0]->op_type, "Abs");
  EXPECT_EQ(remove_unused_functions(model), 0U);
}

TEST(Functions, ABodyThatPassesAnInputOn) {
  onnx::Model model = text_model({{"x"}}, "y = local::F(x)", {"y"});
  onnx::FunctionDefinition function;
  function.key = {"local", "F", ""};
  function.body->opset_imports[""] = 17;
  function.body->add_output(*function.body->add_input("x"));
  model.functions.emplace(function.key, std::move(function));
  inline_functions(model);
  EXPECT_EQ(op_types(model), std::vector<std::string>{"Identity"});
  model.graph().check();
}

TEST(Functions, AnAbsentInputIsAbsentInTheBody) {
  onnx::Model model = text_model({{"x"}}, "y = local::F(x)", {"y"});
  add_function(model, "F", {"x", "low", "high"}, "y = Clip(x, low, high)");
  inline_functions(model);
  EXPECT_EQ(model.graph().nodes()[0]->inputs.size(), 1U);
  model.graph().check();
}

/// A plugin has no boolean input, so there is a Cast; the size output that the ONNX node lacks is added for TensorRT.
TEST(Functions, OnnxOperatorsBecomeGraftsWithACastBeforeBooleans) {
  onnx::Model model =
      text_model({{"x"}}, "b = Greater(x, x)\nn = NonZero(b)\nm = NonZero(x)\ny = Concat<axis=1>(n, m)", {"y"});
  model.graph().inputs()[0]->shape = Shape{4, 5};
  EXPECT_TRUE(onnx::find_onnx_operator(*model.graph().nodes()[1]) != nullptr);
  EXPECT_FALSE(onnx::find_operator_for(*model.graph().nodes()[1]));
  EXPECT_EQ(adopt_onnx_operators(model), 2U);
  model.graph().check();
  EXPECT_EQ(op_types(model), (std::vector<std::string>{"Greater", "Cast", "NonZero", "NonZero", "Concat"}));
  EXPECT_EQ(model.graph().nodes()[1]->int_or("to", 0), 6);
  for (const std::size_t i : {2U, 3U}) {
    const onnx::Node& node = *model.graph().nodes()[i];
    EXPECT_EQ(node.domain, onnx_domain);
    EXPECT_TRUE(onnx::find_operator_for(node));
    ASSERT_EQ(node.outputs.size(), 2U);
    EXPECT_EQ(node.outputs[1]->type, onnx::ElementType::i64);
  }
  EXPECT_EQ(adopt_onnx_operators(model), 0U);
}

/// An attribute that a node of an older operator set leaves out has the default of that set.
TEST(Functions, OnnxOperatorsKeepTheDefaultsOfTheirOperatorSet) {
  for (const std::int64_t opset : {10, 15, 16, 22}) {
    onnx::Model model = text_model(
        {{"x"}, {"rois"}, {"items", onnx::ElementType::i64, {3}}},
        "y = RoiAlign(x, rois, items)\nz = RoiAlign<mode=\"max\", output_width=3>(x, rois, items)", {"y", "z"});
    model.graph().opset_imports[""] = opset;
    EXPECT_EQ(adopt_onnx_operators(model), 2U);
    model.graph().check();
    const onnx::Node& node = *model.graph().nodes()[1];
    EXPECT_EQ(node.op_type, "RegionAlign");
    EXPECT_EQ(node.string_or("coordinate_transformation_mode", ""), opset < 16 ? "output_half_pixel" : "half_pixel");
    EXPECT_EQ(node.string_or("mode", ""), "max");
    EXPECT_EQ(node.int_or("output_width", 0), 3);
  }
}

std::vector<std::string> input_names(const onnx::Node& node) {
  std::vector<std::string> names;
  for (const onnx::Value* input : node.inputs) names.push_back(input == nullptr ? "" : input->name);
  return names;
}

/// TensorRT does not pass the operator set to a plugin: its creator requires these attributes.
TEST(Functions, OnnxFormsNameTheDefaultsThatChanged) {
  std::size_t forms = 0;
  for (const OperatorType* type : operators()) {
    if (!type->onnx_form) continue;
    ++forms;
    onnx::Model model = text_model({{"x"}}, "y = " + std::string(type->onnx_form->name) + "(x)", {"y"});
    onnx::Node& node = *model.graph().nodes()[0];
    onnx::write_old_defaults(node, 1);
    std::vector<std::string_view> written;
    for (const auto& attribute : node.attributes) written.push_back(attribute.first);
    EXPECT_EQ(written, type->onnx_form->changed_defaults) << type->name;
  }
  EXPECT_GE(forms, 8U);
}

/// TensorRT's own TopK supports K up to 3840, which may be computed.
TEST(Functions, OnnxInputsThatAreAttributesHereHaveToBeConstants) {
  const std::vector<TextInput> inputs{{"x", onnx::ElementType::f32, {2, 9000}}, {"n", onnx::ElementType::i64, {1}}};
  onnx::Model model = text_model(inputs, "k = Constant<value_ints=[5000]>()\nv, i = TopK<axis=1>(x, k)", {"v", "i"});
  EXPECT_EQ(adopt_onnx_operators(model), 1U);
  model.graph().check();
  const onnx::Node& node = producer(model, "v");
  EXPECT_EQ(node.op_type, "LargestK");
  EXPECT_EQ(input_names(node), std::vector<std::string>{"x"});
  EXPECT_EQ(node.int_or("k", 0), 5000);
  EXPECT_EQ(node.int_or("axis", 0), 1);
  for (const char* text : {"k = Constant<value_ints=[3840]>()\nv, i = TopK(x, k)", "v, i = TopK(x, n)",
                           "k = Constant<value_ints=[5000]>()\nv, i = TopK(x, k, n)"}) {
    onnx::Model other = text_model(inputs, text, {"v", "i"});
    EXPECT_EQ(adopt_onnx_operators(other), 0U) << text;
    EXPECT_GE(producer(other, "v").inputs.size(), 2U) << text;
  }
}

/// The order of attributes and the positions of their inputs do not matter.
TEST(Functions, AnOnnxFormSaysWhichInputIsWhat) {
  static OperatorType type = *find_operator("CausalConvWithState");
  type.name = "FunctionsTestForm";
  type.onnx_form = {.name = "OneHot", .inputs = {"x", "in_place", "weight"}};
  ASSERT_TRUE(add_operator_library({.file = "form.so", .plugin_namespace = "", .operators = {&type}}).ok());
  const std::vector<TextInput> inputs{{"x", onnx::ElementType::f32, {2, 6, 9}},
                                      {"w", onnx::ElementType::f32, {6, 1, 4}}};
  onnx::Model model = text_model(inputs, "one = Constant<value_int=1>()\ny = OneHot(x, one, w)", {"y"});
  EXPECT_EQ(adopt_onnx_operators(model), 1U);
  model.graph().check();
  EXPECT_EQ(input_names(producer(model, "y")), (std::vector<std::string>{"x", "w"}));
  EXPECT_EQ(producer(model, "y").int_or("in_place", 0), 1);
  onnx::Model out_of_range = text_model(inputs, "two = Constant<value_int=2>()\ny = OneHot(x, two, w)", {"y"});
  EXPECT_EQ(adopt_onnx_operators(out_of_range), 0U);
}

/// A plugin has every input before the last one of the node.
TEST(Functions, WhatAnOnnxOperatorLeavesOutBeforeAnotherInputHasNoElements) {
  onnx::Model model = text_model({{"x", onnx::ElementType::f16, {2, 6, 9}},
                                  {"w", onnx::ElementType::f16, {6, 1, 4}},
                                  {"s", onnx::ElementType::f16, {2, 6, 3}}},
                                 "y, t = CausalConvWithState<activation=\"silu\">(x, w, _, s)\n"
                                 "z, u = CausalConvWithState(x, w)",
                                 {"y", "t", "z", "u"});
  EXPECT_EQ(adopt_onnx_operators(model), 2U);
  model.graph().check();
  const onnx::Node& node = *model.graph().nodes()[0];
  EXPECT_TRUE(onnx::find_operator_for(node));
  ASSERT_EQ(node.inputs.size(), 4U);
  const auto bias = node.inputs[2]->constant();
  ASSERT_TRUE(bias.has_value());
  EXPECT_EQ(bias->type_and_shape(), "f16[0]");
  EXPECT_EQ(to_string(*node.outputs[1]->shape), "[2, 6, 3]");
  EXPECT_EQ(model.graph().nodes()[1]->inputs.size(), 2U);
}

const std::vector<TextInput> of_deformable_convolution{{"x", onnx::ElementType::f16, {2, 4, 9, 8}},
                                                       {"offset", onnx::ElementType::f16, {2, 36, 5, 4}},
                                                       {"mask", onnx::ElementType::f16, {2, 18, 5, 4}},
                                                       {"weight", onnx::ElementType::f16, {6, 4, 3, 3}},
                                                       {"bias", onnx::ElementType::f16, {6}}};

TEST(Functions, AdoptedNodesHaveTheInputsInTheirOperatorsOrder) {
  onnx::Model model = text_model(of_deformable_convolution,
                                 "y = mmdeploy::MMCVModulatedDeformConv2d<stride=[2, 2], padding=[1, 1], "
                                 "deform_groups=2>(x, offset, mask, weight, bias)",
                                 {"y"});
  infer_shapes(model);
  EXPECT_EQ(model.graph().find("y")->shape, (Shape{2, 6, 5, 4}));
  EXPECT_EQ(adopt_drop_ins(model), 1U);
  model.graph().check();
  const onnx::Node& node = producer(model, "y");
  EXPECT_EQ(node.op_type, "DeformableConvolution");
  EXPECT_EQ(input_names(node), (std::vector<std::string>{"x", "weight", "offset", "bias", "mask"}));
  EXPECT_EQ(node.attribute("pads")->value(), AttributeValue(std::vector<std::int64_t>{1, 1, 1, 1}));
  EXPECT_EQ(node.attribute("offset_group")->value(), AttributeValue(std::int64_t{2}));
  EXPECT_EQ(adopt_drop_ins(model), 0U);
}

/// A bias that is left out before the mask has the type of x, whether x is an input or computed.
TEST(Functions, WhatAnAdoptedNodeLeavesOutBeforeAnotherInputHasNoElements) {
  onnx::Model model = text_model(of_deformable_convolution,
                                 "z = Neg(x)\ny = ModulatedDeformConv2d<stride=[2, 2], padding=[1, 1], "
                                 "deformable_group=2>(z, offset, mask, weight)",
                                 {"y"});
  EXPECT_EQ(adopt_drop_ins(model), 1U);
  model.graph().check();
  const onnx::Node& node = producer(model, "y");
  ASSERT_EQ(node.inputs.size(), 5U);
  const auto nothing = node.inputs[3]->constant();
  ASSERT_TRUE(nothing);
  EXPECT_EQ(nothing->type, onnx::ElementType::f16);
  EXPECT_EQ(nothing->dims, std::vector<std::int64_t>{0});
  EXPECT_EQ(node.inputs[4]->name, "mask");
  infer_shapes(model);
  EXPECT_EQ(model.graph().find("y")->shape, (Shape{2, 6, 5, 4}));
}

TEST(Functions, AnAdoptedNodeHasAsManyInputsAsItsPlugin) {
  onnx::Model model = text_model(of_deformable_convolution, "y = trt::ModulatedDeformConv2d(x, offset, mask)", {"y"});
  EXPECT_EQ(error_of([&] { adopt_drop_ins(model); }),
            "node 'y' (trt::ModulatedDeformConv2d): it has 3 inputs; it must have 4 to 5: x,offset,mask,weight,bias");
  onnx::Model deformed =
      text_model(of_deformable_convolution, "y = mmcv::MMCVDeformConv2d(x, offset, mask, weight)", {"y"});
  EXPECT_NE(error_of([&] { infer_shapes(deformed); }).find("it has 4 inputs; it must have 3: x,offset,weight"),
            std::string::npos);
}

TEST(Functions, AnAdoptedNodeHasTheInputsThatItsOperatorRequires) {
  for (const auto& [inputs, message] :
       {std::pair("x, offset, mask, _", "its input 3 is left out: `weight` is required"),
        std::pair("_, _, _, _", "its input 0 is left out: `x` is required")}) {
    onnx::Model model = text_model(of_deformable_convolution,
                                   "y = mmcv::MMCVModulatedDeformConv2d(" + std::string(inputs) + ")", {"y"});
    EXPECT_NE(error_of([&] { adopt_drop_ins(model); }).find(message), std::string::npos) << inputs;
    EXPECT_NE(error_of([&] { check_operator(producer(model, "y")); }).find(message), std::string::npos) << inputs;
  }
  // The left-out mask is not a trailing input of the plugin, but it is one of the operator.
  onnx::Model model =
      text_model(of_deformable_convolution, "y = mmcv::MMCVModulatedDeformConv2d(x, offset, _, weight)", {"y"});
  EXPECT_EQ(adopt_drop_ins(model), 1U);
  EXPECT_EQ(input_names(producer(model, "y")), (std::vector<std::string>{"x", "weight", "offset"}));
}

TEST(Functions, OnnxOperatorsOfTypesThatNoPluginTakesStay) {
  onnx::Model model = text_model({{"x"}}, "d = Cast<to=5>(x)\ny = NonZero(d)", {"y"});
  EXPECT_EQ(adopt_onnx_operators(model), 0U);
  EXPECT_EQ(op_types(model), (std::vector<std::string>{"Cast", "NonZero"}));
  // The output would have another type than before.
  onnx::Model doubles = text_model({{"x", onnx::ElementType::f64, {4}}, {"i", onnx::ElementType::i64, {2, 1}}},
                                   "y = ScatterND<reduction=\"add\">(x, i, x)", {"y"});
  EXPECT_EQ(adopt_onnx_operators(doubles), 0U);
}

TEST(Functions, OnnxOperatorsGetACastFromDoublesWhichTensorRTComputesInF32) {
  onnx::Model model = text_model({{"x", onnx::ElementType::f64, {4, 5}}}, "y = NonZero(x)", {"y"});
  EXPECT_EQ(adopt_onnx_operators(model), 1U);
  EXPECT_EQ(op_types(model), (std::vector<std::string>{"Cast", "NonZero"}));
  EXPECT_EQ(producer(model, "y").input(0)->type, onnx::ElementType::f32);
}

TEST(Functions, InlinedNodesKnowTheOutermostCall) {
  onnx::Model model = text_model({{"x"}}, "y = local::F(x)\nz = Relu(y)", {"z"});
  add_function(model, "F", {"x"}, "a = Abs(x)\ny = local::G(a)");
  add_function(model, "G", {"x"}, "y = Neg(x)");
  onnx::InlineOptions options;
  options.note_calls = true;
  inline_functions(model, options);
  std::vector<std::string> calls;
  for (const onnx::Node* node : model.graph().nodes()) {
    const auto call = node->metadata.find(onnx::call_note);
    calls.push_back(call == node->metadata.end() ? "" : call->second);
  }
  EXPECT_EQ(op_types(model), (std::vector<std::string>{"Abs", "Neg", "Relu"}));
  EXPECT_EQ(calls, (std::vector<std::string>{"y", "y", ""}));
}

TEST(Functions, RecursionIsRefused) {
  onnx::Model model = text_model({{"x"}}, "y = local::F(x)", {"y"});
  add_function(model, "F", {"x"}, "y = local::G(x)");
  add_function(model, "G", {"x"}, "y = local::F(x)");
  EXPECT_NE(error_of([&] { inline_functions(model); }).find("calls itself"), std::string::npos);
}

TEST(Functions, GrowthIsBounded) {
  onnx::Model model = text_model({{"x"}}, "y = local::F30(x)", {"y"});
  add_function(model, "F0", {"x"}, "y = Neg(x)");
  for (int i = 1; i <= 30; ++i) {
    const std::string inner = "local::F" + std::to_string(i - 1);
    add_function(model, "F" + std::to_string(i), {"x"}, "t = " + inner + "(x)\ny = " + inner + "(t)");
  }
  onnx::InlineOptions options;
  options.max_nodes = 1000;
  EXPECT_NE(error_of([&] { inline_functions(model, options); }).find("more than 1000 nodes"), std::string::npos);
}

TEST(Functions, OperatorSetsAreBroughtTogether) {
  onnx::Model model = text_model({{"x", onnx::ElementType::f32, Shape{2, 3}}},
                                 "a = ReduceSum<axes=[1]>(x)\ny = local::F(a)", {"y"}, 11);
  add_function(model, "F", {"x"}, "t = LayerNormalization(x, x)\ny = CastLike(t, x)", {}, 17);
  inline_functions(model);
  EXPECT_EQ(model.graph().opset(), 17);
  EXPECT_EQ(producer(model, "a").inputs.size(), 2U);
  EXPECT_EQ(producer(model, "a").attribute("axes"), nullptr);

  onnx::Model older = text_model({{"x"}}, "y = local::F(x)", {"y"}, 18);
  add_function(older, "F", {"x"}, "y = ReduceMax<axes=[1]>(x)", {}, 17);
  inline_functions(older);
  EXPECT_EQ(older.graph().opset(), 18);
  EXPECT_EQ(producer(older, "y").inputs.size(), 2U);
}

TEST(NodeText, ReadsEveryForm) {
  onnx::Model model = text_model({{"x"}, {"s"}},
                                 "a, b = Split<axis=-1>(x, s)  # a comment\n"
                                 "r = Resize<mode=\"linear\", cubic_coeff_a=-0.5>(a, _, s)\n"
                                 "z = Constant<value=int8(0)>(); l = Constant<value=int64([1, -2])>()\n"
                                 "c = Cast<to=bfloat16>(b)\n"
                                 "_, m = my.ops::Two<f=[1.0, 2], n=[], i=9007199254740993>(c)\n",
                                 {"r"});
  EXPECT_EQ(producer(model, "b").outputs.size(), 2U);
  EXPECT_EQ(producer(model, "r").inputs[1], nullptr);
  EXPECT_EQ(producer(model, "r").float_or("cubic_coeff_a", 0), -0.5F);
  EXPECT_EQ(model.graph().find("z")->constant()->type, onnx::ElementType::i8);
  EXPECT_EQ(model.graph().find("l")->constant()->ints(), (std::vector<std::int64_t>{1, -2}));
  EXPECT_EQ(producer(model, "c").int_or("to", 0), 16);
  EXPECT_EQ(producer(model, "m").domain, "my.ops");
  EXPECT_EQ(producer(model, "m").outputs[0], nullptr);
  EXPECT_EQ(producer(model, "m").floats("f"), (std::vector<float>{1, 2}));
  EXPECT_EQ(producer(model, "m").int_or("i", 0), 9007199254740993);  // more than a double holds
}

TEST(NodeText, ErrorsNameTheirPlace) {
  const auto error = [](const std::string& text) { return error_of([&] { text_model({{"x"}}, text, {}); }); };
  EXPECT_NE(error("y = Relu(z)").find("line 1, column 10: no line above defines the input z"), std::string::npos);
  EXPECT_NE(error("x = Relu(x)").find("line 1, column 1: the name is defined twice"), std::string::npos);
  EXPECT_NE(error("y = Relu(x)\nz = Relu<alpha=@a>(x)").find("line 2, column 17: the operator has no attribute"),
            std::string::npos);
  EXPECT_NE(error("y = Relu").find("`(` is missing"), std::string::npos);
  EXPECT_NE(error("y = Relu<a=1, a=2>(x)").find("given twice"), std::string::npos);
  EXPECT_NE(error("y = Relu<a=99999999999999999999>(x)").find("exceeds 64 bits"), std::string::npos);
  EXPECT_NE(error_of([] { text_model({{"x"}}, "a = Relu(x)", {"y"}); }).find("'y'"), std::string::npos);
}

class EveryOperator : public ::testing::TestWithParam<const OperatorType*> {};

TEST_P(EveryOperator, FunctionIsReadAndComplete) {
  const OperatorType& type = *GetParam();
  auto op = type.create();
  for (const TypeRow& row : type.type_rows) {
    const auto function =
        onnx::make_function(*op, {.dtype = row.formats[0].dtype, .count = type.input_count(), .rank = 4});
    if (!function) continue;
    function->body->check();
    EXPECT_EQ(function->body->inputs().size(), type.input_count());
    EXPECT_EQ(function->body->outputs().size(), type.output_count());
    EXPECT_EQ(function->attributes.size(), type.attributes.size());
    EXPECT_EQ(function->body->opset(), 17);
  }
}

TEST_P(EveryOperator, FunctionsAreOnnxInEveryOperatorSet) { onnx::check_bodies(*GetParam()); }

TEST_P(EveryOperator, AttachedAndDetachedAgain) {
  const OperatorType& type = *GetParam();
  onnx::Model model;
  model.graph().opset_imports[""] = 17;
  std::vector<onnx::Value*> inputs;
  std::vector<std::string> outputs;
  for (const Port& port : type.ports) {
    if (port.is_output()) {
      outputs.push_back(outputs.empty() ? "result" : "result_" + std::string(port.name));
      continue;
    }
    inputs.push_back(model.graph().add_input(std::string(port.name)));
    inputs.back()->type = onnx::ElementType::f32;
  }
  onnx::Node* node = add_operator_node(model.graph(), *type.create(), inputs, outputs);
  model.graph().add_output(*node->output());
  node->name = "layer";
  const std::string before = to_text(*node);
  attach_functions(model);
  const onnx::Node& attached = producer(model, "result");
  EXPECT_TRUE(find_operator_for(attached));
  EXPECT_EQ(attached.attributes.size(), type.attributes.size());
  onnx::Model again = onnx::parse_onnx(serialize_onnx(model), "", "attached");
  EXPECT_EQ(find_operator_for(producer(again, "result")).type, &type);
  EXPECT_EQ(detach_functions(again), 1U);
  onnx::Node& detached = producer(again, "result");
  EXPECT_EQ(detached.op_type, type.name);
  EXPECT_TRUE(again.functions.empty());
  EXPECT_EQ(detached.string_or("plugin_version", ""), "1");
  EXPECT_EQ(detached.string_or("plugin_namespace", "none"), "graft");
  EXPECT_NE(make_operator(detached), nullptr);
  detached.attributes.erase("plugin_version");
  detached.attributes.erase("plugin_namespace");
  EXPECT_EQ(to_text(detached), before);
}

INSTANTIATE_TEST_SUITE_P(Registry, EveryOperator, ::testing::ValuesIn(operators().begin(), operators().end()),
                         [](const auto& info) { return std::string(info.param->name); });

TEST(OperatorFunctions, ADifferentBodyUnderTheSameNameIsADefect) {
  // Functions of two nodes may share a name only with the same body; here both nodes have the same operator.
  onnx::Model model =
      text_model({{"x"}}, "a = graft::LeakyReLU<alpha=0.5>(x)\ny = graft::LeakyReLU<alpha=0.25>(a)", {"y"});
  EXPECT_TRUE(attach_functions(model).empty());
  EXPECT_EQ(model.functions.size(), 1U);
}

TEST(OperatorFunctions, IntegersHaveTheirOwnFunction) {
  onnx::Model model = text_model({{"x", onnx::ElementType::i8, Shape{2}}, {"z", onnx::ElementType::f32, Shape{2}}},
                                 "a = graft::LeakyReLU<x_scale=0.5>(x)\nb = graft::LeakyReLU(z)", {"a", "b"});
  attach_functions(model);
  EXPECT_EQ(model.functions.size(), 2U);
  EXPECT_NE(producer(model, "a").op_type, "LeakyReLU");
  EXPECT_EQ(producer(model, "a").metadata.at("graft.operator"), "LeakyReLU");
  EXPECT_EQ(producer(model, "b").op_type, "LeakyReLU");
  EXPECT_TRUE(producer(model, "b").metadata.empty());
  attach_functions(model);  // a second time changes nothing
  EXPECT_EQ(model.functions.size(), 2U);
}

TEST(OperatorFunctions, NativeFormOnlyWhereThereIsOne) {
  onnx::Model model = text_model({{"x", onnx::ElementType::f32, Shape{2, 3}}},
                                 "a = graft::LeakyReLU<alpha=0.5>(x)\ny = graft::L2Normalize(a)", {"y"});
  EXPECT_TRUE(onnx::replace_with_native_form(producer(model, "a")));
  EXPECT_FALSE(onnx::replace_with_native_form(producer(model, "y")));
  EXPECT_EQ(op_types(model), (std::vector<std::string>{"LeakyRelu", "L2Normalize"}));
  EXPECT_EQ(producer(model, "a").float_or("alpha", 0), 0.5F);
  model.graph().check();
}

}  // namespace
}  // namespace graft::test

// Tests that editing a graph keeps its links, names, order and outputs.
#include <gtest/gtest.h>

#include <algorithm>

#include "onnx/extract.hpp"
#include "onnx/onnx_io.hpp"
#include "onnx/shape_inference.hpp"
#include "onnx/text.hpp"
#include "tests/support/text_model.hpp"

namespace graft::test {
namespace {

std::vector<std::string> op_types(const onnx::Graph& graph) {
  std::vector<std::string> types;
  for (const onnx::Node* node : graph.nodes()) types.push_back(node->op_type);
  return types;
}

/// Returns an If whose branches use the outer value `a`; one of them returns it.
onnx::Model model_with_branches() {
  onnx::Model model = text_model({{"x", onnx::ElementType::f32, Shape{2}}, {"c", onnx::ElementType::boolean, Shape{}}},
                                 "a = Relu(x)", {});
  onnx::Graph& graph = model.graph();
  onnx::Node* node = graph.add_node("If", {graph.find("c")}, {"y"});
  for (const char* branch : {"then_branch", "else_branch"}) {
    auto inner = std::make_unique<onnx::Graph>(&graph);
    parse_nodes(*inner, "r = Neg(a)", {"r"}, nullptr);
    node->attributes[branch] = onnx::NodeAttribute(onnx::AttributeData(std::move(inner)));
  }
  graph.add_output(*node->output());
  graph.check();
  return model;
}

TEST(Edit, UsesFollowTheInputs) {
  onnx::Model model = text_model({{"x"}}, "a = Relu(x)\ny = Add(a, a)", {"y"});
  onnx::Value& a = *model.graph().find("a");
  onnx::Node& add = producer(model, "y");
  EXPECT_EQ(a.uses.size(), 2U);
  model.graph().set_input(add, 1, model.graph().find("x"));
  ASSERT_EQ(a.uses.size(), 1U);
  EXPECT_EQ(a.uses[0], (onnx::Use{&add, 0}));
  model.graph().check();
}

TEST(Edit, ANodeWhoseOutputIsUsedIsNotRemoved) {
  onnx::Model model = text_model({{"x"}}, "a = Relu(x)\ny = Neg(a)", {"y"});
  EXPECT_NE(error_of([&] { model.graph().remove_node(producer(model, "a")); }), "");
  EXPECT_NE(error_of([&] { model.graph().remove_node(producer(model, "y")); }), "");
  model.graph().check();
}

TEST(Edit, AGraphOutputKeepsItsNameWhenReplaced) {
  onnx::Model model = text_model({{"x"}}, "a = Relu(x)\ny = Neg(a)\nb = Abs(x)", {"y"});
  onnx::Value& b = *model.graph().find("b");
  model.graph().replace_all_uses(*model.graph().find("y"), b);
  EXPECT_EQ(b.name, "y");
  EXPECT_EQ(model.graph().outputs(), std::vector<onnx::Value*>{&b});
  EXPECT_EQ(model.graph().remove_dead(), 2U);
  EXPECT_EQ(op_types(model.graph()), std::vector<std::string>{"Abs"});
  model.graph().check();
}

TEST(Edit, AnOutputReplacedByAnInputGetsAnIdentity) {
  onnx::Model model = text_model({{"x"}}, "y = Relu(x)\nz = Neg(y)", {"y", "z"});
  model.graph().replace_all_uses(*model.graph().find("y"), *model.graph().find("x"));
  model.graph().remove_dead();
  EXPECT_EQ(op_types(model.graph()), (std::vector<std::string>{"Identity", "Neg"}));
  EXPECT_EQ(model.graph().outputs()[0]->name, "y");
  EXPECT_EQ(producer(model, "z").inputs[0]->name, "x");
  model.graph().check();
}

TEST(Edit, ReplacingCanSpareTheNodeThatMakesTheReplacement) {
  onnx::Model model = text_model({{"x"}}, "a = Relu(x)\ny = Neg(a)", {"y"});
  onnx::Value& a = *model.graph().find("a");
  onnx::Node* cast = model.graph().add_node("Cast", {&a}, {"c"}, &producer(model, "y"));
  model.graph().replace_all_uses(a, *cast->output(), cast);
  EXPECT_EQ(producer(model, "y").inputs[0], cast->output());
  EXPECT_EQ(cast->inputs[0], &a);
  model.graph().check();
}

TEST(Edit, SubGraphsCountAsUses) {
  onnx::Model model = model_with_branches();
  EXPECT_EQ(model.graph().find("a")->uses.size(), 2U);
  EXPECT_EQ(model.graph().remove_dead(), 0U);
  onnx::Node* abs = model.graph().add_node("Abs", {model.graph().find("x")}, {"b"}, &producer(model, "y"));
  model.graph().replace_all_uses(*model.graph().find("a"), *abs->output());
  for (const onnx::Graph* branch : producer(model, "y").subgraphs())
    EXPECT_EQ(branch->nodes()[0]->inputs[0], abs->output());
  EXPECT_EQ(model.graph().remove_dead(), 1U);
  model.graph().check();
}

TEST(Edit, RemovingANodeWithSubGraphsFreesWhatTheyUsed) {
  onnx::Model model = model_with_branches();
  while (!model.graph().outputs().empty()) model.graph().remove_output(0);
  model.graph().add_output(*model.graph().find("a"));
  EXPECT_EQ(model.graph().remove_dead(), 1U);
  EXPECT_TRUE(model.graph().find("a")->uses.empty());
  EXPECT_EQ(model.graph().unique_name("r"), "r");  // the branches' names are free again
  model.graph().check();
}

TEST(Edit, WhatAnEditAddsAndLeavesIsTold) {
  onnx::Model model = text_model({{"x"}}, "a = Relu(x)\ny = Neg(a)", {"y"});
  onnx::Graph& graph = model.graph();
  std::vector<onnx::Node*> inner;
  onnx::Node* kept = nullptr;
  const std::vector<onnx::Node*> added = graph.nodes_added_by([&] {
    onnx::Node* first = graph.add_node("Abs", {graph.find("x")}, {"p"}, graph.find("y")->producer);
    inner = graph.nodes_added_by([&] { kept = graph.add_node("Exp", {graph.find("x")}, {"q"}); });
    graph.remove_node(*first);
  });
  EXPECT_EQ(inner, std::vector<onnx::Node*>{kept});
  EXPECT_EQ(added, std::vector<onnx::Node*>{kept});
  EXPECT_NE(error_of([&] { (void)graph.nodes_added_by([] { throw Error("stopped"); }); }), "");
  graph.add_node("Abs", {graph.find("x")}, {"r"});
  EXPECT_EQ(added.size(), 1U);
  graph.check();
}

TEST(Edit, NamesAreUniqueAcrossSubGraphs) {
  onnx::Model model = model_with_branches();
  EXPECT_EQ(model.graph().make_value("r")->name, "r~1");
  EXPECT_EQ(model.graph().make_value("r")->name, "r~2");
  EXPECT_EQ(model.graph().make_value("new")->name, "new");
  EXPECT_NE(error_of([&] { model.graph().rename(*model.graph().find("a"), "x"); }), "");
}

TEST(Edit, SortingMovesOnlyWhatHasTo) {
  onnx::Model model = text_model({{"x"}}, "a = Relu(x)\nb = Neg(x)\ny = Add(a, b)", {"y"});
  onnx::Node* late = model.graph().add_node("Abs", {model.graph().find("x")}, {"c"});
  model.graph().set_input(producer(model, "a"), 0, late->output());
  model.graph().topological_sort();
  EXPECT_EQ(op_types(model.graph()), (std::vector<std::string>{"Neg", "Abs", "Relu", "Add"}));
  model.graph().check();
}

TEST(Edit, ACycleIsNamed) {
  onnx::Model model = text_model({{"x"}}, "a = Relu(x)\nb = Neg(a)\ny = Abs(b)", {"y"});
  model.graph().set_input(producer(model, "a"), 0, model.graph().find("b"));
  const std::string error = error_of([&] { model.graph().topological_sort(); });
  EXPECT_TRUE(error.find("'a' (Relu)") != std::string::npos || error.find("'b' (Neg)") != std::string::npos) << error;
}

TEST(Edit, ACopyIsIndependent) {
  onnx::Model model = model_with_branches();
  onnx::Model copy = model.clone();
  copy.graph().check();
  EXPECT_EQ(to_text(model), to_text(copy));
  const std::string before = to_text(model);
  copy.graph().rename(*copy.graph().find("a"), "changed");
  EXPECT_EQ(to_text(model), before);
  model = onnx::Model();
  copy.graph().check();
}

TEST(Extract, NodesBecomeAModelOfTheirOwn) {
  onnx::Model model = text_model(
      {{"x", onnx::ElementType::f32, Shape{Dim::symbol("n"), 4}}},
      "two = Constant<value=float(2)>()\na = Relu(x)\nb = Pow(a, two)\nc = Add(b, a)\ny = Neg(c)", {"y", "b"});
  infer_shapes(model);
  const onnx::Graph& graph = model.graph();
  const onnx::Model part = extract_nodes(model, {graph.find("b")->producer, graph.find("c")->producer});
  part.graph().check();
  EXPECT_EQ(op_types(part.graph()), (std::vector<std::string>{"Constant", "Pow", "Add"}));
  ASSERT_EQ(part.graph().inputs().size(), 1U);
  EXPECT_EQ(part.graph().inputs()[0]->name, "a");
  ASSERT_EQ(part.graph().outputs().size(), 2U);  // b is an output of the model, c is read by Neg
  EXPECT_EQ(part.graph().outputs()[0]->name, "b");
  EXPECT_EQ(part.graph().outputs()[1]->name, "c");
}

TEST(Extract, ANodeKeepsItsUnusedOutputsUnused) {
  onnx::Model model = text_model({{"x", onnx::ElementType::f32, Shape{1, 1, 4, 4}}},
                                 "v, i = MaxPool<kernel_shape=[2, 2]>(x)\na, b = MaxPool<kernel_shape=[2, 2]>(v)", {});
  infer_shapes(model);
  const onnx::Graph& graph = model.graph();
  const onnx::Model first = extract_nodes(model, {graph.find("v")->producer});
  ASSERT_EQ(first.graph().outputs().size(), 1U);
  EXPECT_EQ(first.graph().outputs()[0]->name, "v");
  EXPECT_EQ(extract_nodes(model, {graph.find("a")->producer}).graph().outputs().at(0)->name, "a");
}

TEST(Extract, WhatASubGraphReadsBecomesAnInput) {
  onnx::Model model = model_with_branches();
  infer_shapes(model);
  const onnx::Model part = extract_nodes(model, {model.graph().find("y")->producer});
  part.graph().check();
  ASSERT_EQ(part.graph().inputs().size(), 2U);
  EXPECT_EQ(part.graph().inputs()[1]->name, "a");
}

TEST(Extract, TakesWhatTheOutputsNeed) {
  onnx::Model model =
      text_model({{"x", onnx::ElementType::f32, Shape{Dim::symbol("n"), 4}}},
                 "two = Constant<value=float(2)>()\na = Relu(x)\nb = Pow(a, two)\nc = Sqrt(b)\ny = Neg(c)\nz = Abs(a)",
                 {"y", "z"});
  infer_shapes(model);
  const onnx::Model part = extract(model, {model.graph().find("a")}, {model.graph().find("c")});
  part.graph().check();
  EXPECT_EQ(op_types(part.graph()), (std::vector<std::string>{"Constant", "Pow", "Sqrt"}));
  EXPECT_EQ(type_text(*part.graph().inputs().at(0)), "f32[n, 4]");
  EXPECT_EQ(part.graph().outputs().at(0)->name, "c");
  const onnx::Model again = onnx::parse_onnx(serialize_onnx(part), "", "part");
  EXPECT_EQ(op_types(again.graph()), (std::vector<std::string>{"Constant", "Pow", "Sqrt"}));
  EXPECT_NE(error_of([&] { (void)extract(model, {model.graph().find("b")}, {model.graph().find("z")}); }).find("'x'"),
            std::string::npos);
}

}  // namespace
}  // namespace graft::test

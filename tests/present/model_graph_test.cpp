// Tests the drawn graph of a model: nodes, inputs, outputs, constants folded into nodes, subgraphs, captured values.
#include "present/html/model_graph.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <utility>

#include "toolkit/access.hpp"

namespace graft::html {
namespace {

bool has_edge(const Graph& graph, std::size_t from, std::size_t to) {
  return std::any_of(graph.edges.begin(), graph.edges.end(),
                     [&](const Edge& edge) { return edge.from == from && edge.to == to; });
}

/// Adds the graph of a model to a report.
ModelPlaces add_graph_of(Report& report, onnx::Model model) {
  return add_graphs(report, toolkit::ModelAccess::make(std::move(model)).graph(), "main graph");
}

TEST(ModelGraph, ConstantsArePartOfTheNodesThatReadThem) {
  onnx::Model model;
  graft::onnx::Graph& graph = model.graph();
  onnx::Value* x = graph.add_input("x");
  onnx::Value* weight =
      graph.add_constant("w", onnx::TensorData::from_numbers(onnx::ElementType::f32, {2}, std::vector<double>{1, 2}));
  graft::onnx::Node* add = graph.add_node("Add", {x, weight}, {"y"});
  add->name = "add";
  graph.add_output(*add->outputs[0]);

  Report report;
  const ModelPlaces places = add_graph_of(report, std::move(model));
  ASSERT_EQ(report.graphs.size(), 1);
  const Graph& drawn = report.graphs[0];
  ASSERT_EQ(drawn.nodes.size(), 3);
  EXPECT_EQ(drawn.nodes[0].op, "input");
  EXPECT_EQ(drawn.nodes[1].op, "Add");
  EXPECT_EQ(drawn.nodes[2].op, "output");
  ASSERT_EQ(drawn.nodes[1].inputs.size(), 2);
  EXPECT_FALSE(drawn.nodes[1].inputs[0].is_constant);
  EXPECT_TRUE(drawn.nodes[1].inputs[1].is_constant);
  EXPECT_TRUE(has_edge(drawn, 0, 1));
  EXPECT_TRUE(has_edge(drawn, 1, 2));
  EXPECT_EQ(drawn.edges.size(), 2);
  EXPECT_EQ(places.nodes.at(0)->node, 1);
  EXPECT_EQ(places.by_id.find("y")->second.node, 1);
}

TEST(ModelGraph, WhatIsDequantizedOfAConstantIsPartOfTheNodeThatReadsIt) {
  onnx::Model model;
  graft::onnx::Graph& graph = model.graph();
  onnx::Value* x = graph.add_input("x");
  const auto constant = [&](const char* name, onnx::ElementType type) {
    return graph.add_constant(name, onnx::TensorData::from_numbers(type, {2}, std::vector<double>{1, 2}));
  };
  onnx::Value* steps = constant("w/int8", onnx::ElementType::i8);
  onnx::Value* scale = constant("w/scale", onnx::ElementType::f32);
  graft::onnx::Node* weight = graph.add_node("DequantizeLinear", {steps, scale}, {"w/rounded"});
  graft::onnx::Node* add = graph.add_node("Add", {x, weight->outputs[0]}, {"y"});
  // A DequantizeLinear of a computed tensor is a node of its own.
  graft::onnx::Node* quantize = graph.add_node("QuantizeLinear", {add->outputs[0], scale}, {"q"});
  graft::onnx::Node* back = graph.add_node("DequantizeLinear", {quantize->outputs[0], scale}, {"z"});
  graph.add_output(*back->outputs[0]);

  Report report;
  const ModelPlaces places = add_graph_of(report, std::move(model));
  const Graph& drawn = report.graphs[0];
  std::vector<std::string> ops;
  for (const Node& node : drawn.nodes) ops.push_back(node.op);
  EXPECT_EQ(ops, (std::vector<std::string>{"input", "Add", "QuantizeLinear", "DequantizeLinear", "output"}));
  EXPECT_FALSE(places.nodes.at(0).has_value());
  const Port& port = drawn.nodes[1].inputs[1];
  EXPECT_TRUE(port.is_constant);
  EXPECT_EQ(port.name, "w/int8");
  EXPECT_NE(port.type.find("i8"), std::string::npos) << port.type;
  EXPECT_EQ(drawn.edges.size(), 4);
}

TEST(ModelGraph, SubGraphsAreGraphsAndWhatTheyReadIsAnEdge) {
  onnx::Model model;
  graft::onnx::Graph& graph = model.graph();
  onnx::Value* x = graph.add_input("x");
  graft::onnx::Node* relu = graph.add_node("Relu", {x}, {"r"});
  auto branch = std::make_unique<graft::onnx::Graph>(&graph);
  branch->add_output(*branch->add_node("Neg", {relu->outputs[0]}, {"n"})->outputs[0]);
  graft::onnx::Node* choice = graph.add_node("If", {graph.add_input("c")}, {"y"});
  choice->attributes["then_branch"] = onnx::AttributeData(std::move(branch));
  graph.add_output(*choice->outputs[0]);

  Report report;
  (void)add_graph_of(report, std::move(model));
  ASSERT_EQ(report.graphs.size(), 2);
  const Graph& drawn = report.graphs[0];
  const auto at = [&](std::string_view op) {
    return static_cast<std::size_t>(
        std::find_if(drawn.nodes.begin(), drawn.nodes.end(), [&](const Node& node) { return node.op == op; }) -
        drawn.nodes.begin());
  };
  EXPECT_TRUE(has_edge(drawn, at("Relu"), at("If"))) << "read inside";
  EXPECT_EQ(drawn.nodes[at("If")].graphs, std::vector<std::size_t>{1});
  EXPECT_EQ(report.graphs[1].nodes[0].op, "Neg");
}

}  // namespace
}  // namespace graft::html

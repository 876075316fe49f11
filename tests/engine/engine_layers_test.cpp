// Tests how a model's nodes are found in the layers that TensorRT lists.
#include "engine/engine_layers.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace graft::engine {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

onnx::Value* add(onnx::Graph& graph, const char* op, std::vector<onnx::Value*> inputs, const std::string& name) {
  onnx::Node* node = graph.add_node(op, std::move(inputs), {name + "_out"});
  node->name = name;
  return node->outputs[0];
}

/// Returns a model with x and w in int8, their product, and its sum with x.
onnx::Model product() {
  onnx::Model model;
  onnx::Graph& graph = model.graph();
  graph.opset_imports[""] = 18;
  onnx::Value* scale = graph.add_input("scale");
  onnx::Value* x = graph.add_input("x");
  onnx::Value* w = graph.add_input("w");
  onnx::Value* left = add(graph, "DequantizeLinear", {add(graph, "QuantizeLinear", {x, scale}, "qx"), scale}, "dx");
  onnx::Value* right = add(graph, "DequantizeLinear", {add(graph, "QuantizeLinear", {w, scale}, "qw"), scale}, "dw");
  graph.add_output(*add(graph, "Add", {add(graph, "MatMul", {left, right}, "product"), x}, "sum"));
  return model;
}

nlohmann::json layer(const char* kind, const std::vector<std::string>& types, const std::vector<std::string>& nodes) {
  nlohmann::json inputs = nlohmann::json::array();
  for (const std::string& type : types) inputs.push_back({{"tensor", "t"}, {"type", type}});
  return {
      {"name", "kernel"}, {"kind", kind}, {"inputs", inputs}, {"outputs", nlohmann::json::array()}, {"nodes", nodes}};
}

TEST(EngineLayers, NodesThatRoundAreLeftOut) {
  const onnx::Model model = product();
  const report::EngineLayers engine = read_engine_layers(
      model, {{"layers", {layer("gemm", {"i8", "i8"}, {"qx", "dx", "product", "inner | sum (Add)"})}}});
  ASSERT_EQ(engine.layers.size(), 1);
  EXPECT_TRUE(engine.layers[0].is_matrix);
  EXPECT_THAT(engine.layers[0].nodes, ElementsAre("product", "sum"));
  EXPECT_THAT(engine.islands, IsEmpty());
}

TEST(EngineLayers, AProductThatReadsLessInInt8ThanTheModelSaysIsAnIsland) {
  const onnx::Model model = product();
  const report::EngineLayers engine = read_engine_layers(
      model, {{"layers", {layer("gemm", {"i8", "f32"}, {"product"}), layer("kgen", {"f32"}, {"sum"})}}});
  ASSERT_EQ(engine.islands.size(), 1);
  EXPECT_EQ(engine.islands[0].node, (NodeRef{.id = "product_out", .name = "product", .op = "MatMul", .domain = ""}));
  EXPECT_EQ(engine.islands[0].type, "f32");
  EXPECT_EQ(engine.reads().at("f32"), 2);
  EXPECT_EQ(engine.matrix_layers().size(), 1);
}

TEST(EngineLayers, WhatIsNotToldIsNotKnown) {
  EXPECT_EQ(read_engine_layers(product(), {{"layers", nullptr}, {"reason", "no inspector"}}).unknown, "no inspector");
  EXPECT_FALSE(read_engine_layers(product(), nullptr).unknown.empty());
}

}  // namespace
}  // namespace graft::engine

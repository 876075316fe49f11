// Tests that a token cancels a run of a session, also in a Loop of many short iterations.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cstdint>
#include <memory>
#include <thread>
#include <utility>

#include "graft/toolkit/run.hpp"
#include "tests/support/text_model.hpp"
#include "toolkit/access.hpp"
#include "toolkit/tensors.hpp"

namespace graft::toolkit {
namespace {

/// Returns a network that repeats an operator of Graft `n` times.
Model repeating_model() {
  onnx::Model model = test::text_model({{"x", onnx::ElementType::f32, Shape{2, 4}},
                                        {"n", onnx::ElementType::i64, Shape{}},
                                        {"yes", onnx::TensorData::scalar_of(onnx::ElementType::boolean, 1)}},
                                       "", {});
  onnx::Graph& graph = model.graph();
  onnx::Node* loop = graph.add_node("Loop", {graph.find("n"), graph.find("yes"), graph.find("x")}, {"y"});
  auto body = std::make_unique<onnx::Graph>(&graph);
  for (const char* input : {"i", "go"}) body->add_input(input);
  onnx::Value* carried = body->add_input("v");
  carried->type = onnx::ElementType::f32;
  carried->shape = Shape{2, 4};
  onnx::parse_nodes(*body, "on = Identity(go)\nu = graft::LeakyReLU<alpha=0.5>(v)\nw = Add(u, x)", {"on", "w"},
                    nullptr);
  loop->attributes["body"] = onnx::NodeAttribute(onnx::AttributeData(std::move(body)));
  graph.add_output(*loop->output());
  infer_shapes(model);
  return ModelAccess::make(std::move(model));
}

Tensors inputs(std::int64_t iterations) {
  return to_public({{"x", onnx::TensorData::from_numbers(onnx::ElementType::f32, {2, 4}, {1, -2, 3, -4, 5, -6, 7, -8})},
                    {"n", onnx::TensorData::scalar_of(onnx::ElementType::i64, static_cast<double>(iterations))}},
                   "input");
}

// The iterations would take many minutes. The engine's process ends with the test.
TEST(Session, ARunOfManyShortIterationsIsCancelled) {
  const Model model = repeating_model();
  for (const bool own_kernels : {false, true}) {
    SessionOptions options;
    options.own_kernels = own_kernels;
    CancelToken token = options.watch.cancel;
    Session session(model, options);
    EXPECT_EQ(session.run(inputs(2)).size(), 1U);
    std::thread canceller([&] {
      std::this_thread::sleep_for(std::chrono::milliseconds(300));  // so that the run has begun
      token.cancel();
    });
    EXPECT_THROW(static_cast<void>(session.run(inputs(1'000'000'000))), Cancelled) << own_kernels;
    canceller.join();
    EXPECT_THROW(static_cast<void>(session.run(inputs(2))), Cancelled) << own_kernels;
  }
}

}  // namespace
}  // namespace graft::toolkit

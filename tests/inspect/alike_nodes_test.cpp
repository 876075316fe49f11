// Tests which nodes count as equal, so that TensorRT runs only one of them.
#include "inspect/alike_nodes.hpp"

#include <gtest/gtest.h>

#include "inspect/model_parts.hpp"
#include "onnx/shape_inference.hpp"
#include "tests/support/text_model.hpp"

namespace graft::inspect {
namespace {

TEST(AlikeNodes, kind_leaves_out_sizes_and_exact_does_not) {
  onnx::Model model = test::text_model({{"x", onnx::ElementType::f32, Shape{2, 4}},
                                        {"y", onnx::ElementType::f32, Shape{2, 4}},
                                        {"z", onnx::ElementType::f32, Shape{8, 8}}},
                                       "a = Relu(x)\nb = Relu(y)\nc = Relu(z)\nd = Neg(x)", {"a", "b", "c", "d"});
  infer_shapes(model);
  const auto likeness = [&](const char* value) { return *likeness_of(test::producer(model, value), can_be_input); };
  EXPECT_EQ(likeness("a").exact, likeness("b").exact);
  EXPECT_EQ(likeness("a").kind, likeness("c").kind);
  EXPECT_NE(likeness("a").exact, likeness("c").exact);
  EXPECT_NE(likeness("a").kind, likeness("d").kind);
}

TEST(AlikeNodes, attributes_are_compared_with_their_types) {
  onnx::Model model =
      test::text_model({{"x", onnx::ElementType::f32, Shape{2, 4}}}, "a = Relu(x)\nb = Relu(x)", {"a", "b"});
  infer_shapes(model);
  test::producer(model, "a").attributes["n"] = onnx::NodeAttribute(onnx::AttributeData(std::int64_t{2}));
  test::producer(model, "b").attributes["n"] = onnx::NodeAttribute(onnx::AttributeData(2.0F));
  EXPECT_NE(likeness_of(test::producer(model, "a"), can_be_input)->kind,
            likeness_of(test::producer(model, "b"), can_be_input)->kind);
}

}  // namespace
}  // namespace graft::inspect

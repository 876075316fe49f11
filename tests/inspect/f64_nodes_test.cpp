// Tests which nodes are reported as computing in f64.
#include "inspect/f64_nodes.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "tests/support/text_model.hpp"

namespace graft::inspect {
namespace {

using onnx::ElementType;
using testing::Optional;
using testing::StrEq;

std::optional<std::string> warning_of(const std::string& nodes, ElementType type = ElementType::f32) {
  return f64_warning(test::inferred_text_model({{"x", type, {2, 3}}}, nodes, {"y"}));
}

TEST(F64Nodes, AreNamedWithTheInputsAndOutputs) {
  EXPECT_THAT(warning_of("d = Cast<to=double>(x)\ne = Mul(d, d)\ny = Cast<to=float>(e)"),
              Optional(StrEq("test.onnx: TensorRT computes f64 in f32, to about 7 digits: node 'e' (Mul)")));
  EXPECT_THAT(
      warning_of("y = Transpose(x)", ElementType::f64),
      Optional(StrEq(
          "test.onnx: TensorRT computes f64 in f32, to about 7 digits: in the engine, the type of 'x', 'y' is f32")));
}

TEST(F64Nodes, AreNoneWhereElementsAreOnlyMoved) {
  EXPECT_EQ(warning_of("y = Mul(x, x)"), std::nullopt);
  EXPECT_EQ(warning_of("d = Cast<to=double>(x)\ne = Transpose(d)\ny = Cast<to=float>(e)"), std::nullopt);
}

struct Movement {
  std::string node;  ///< Reads 'd', in f64, and writes 'e'.
  onnx::TensorData i;
};

std::optional<std::string> warning_of(const Movement& movement) {
  const std::string nodes = "d = Cast<to=double>(x)\n" + movement.node + "\ny = Cast<to=float>(e)";
  return f64_warning(
      test::inferred_text_model({{"x", ElementType::f32, {2, 3, 4}}, {"i", movement.i}}, nodes, {"y"}, 18));
}

TEST(F64Nodes, AreNoneForOperatorsThatMoveElementsByIndexes) {
  const auto integers = [](std::vector<std::int64_t> dims, std::vector<double> numbers) {
    return onnx::TensorData::from_numbers(ElementType::i64, std::move(dims), numbers);
  };
  const onnx::TensorData one = integers({1, 1, 1}, {1});
  const onnx::TensorData rows = integers({2, 1}, {0, 1});
  const onnx::TensorData sizes = integers({4}, {1, 4, 2, 3});
  for (const Movement& movement : {
           Movement{"e = GatherElements(d, i)", one},
           Movement{"u = GatherElements(d, i)\ne = ScatterElements(d, i, u)", one},
           Movement{"e = ScatterND(d, i, d)", rows},
           Movement{"e = Pad(d, i)", integers({6}, {0, 1, 1, 0, 0, 0})},
           Movement{"e = ReverseSequence(d, i)", integers({3}, {2, 1, 2})},
           Movement{"b = Cast<to=bool>(i)\ne = Compress<axis=0>(d, b)", integers({2}, {1, 0})},
           Movement{"e = Trilu(d, i)", integers({}, {1})},
           Movement{"e = CenterCropPad(d, i)", integers({3}, {1, 5, 4})},
           Movement{"r = Reshape(d, i)\ne = DepthToSpace<blocksize=2>(r)", sizes},
           Movement{"r = Reshape(d, i)\ne = SpaceToDepth<blocksize=1>(r)", sizes},
       }) {
    EXPECT_EQ(warning_of(movement), std::nullopt) << movement.node;
  }
  EXPECT_THAT(warning_of(Movement{"e = ScatterND<reduction=\"add\">(d, i, d)", rows}),
              Optional(testing::EndsWith("node 'e' (ScatterND)")));
}

TEST(F64Nodes, IncludeThoseInFunctions) {
  onnx::Model model = test::text_model({{"x", ElementType::f32, {2, 3}}}, "y = local::Outer(x)", {"y"});
  model.graph().opset_imports["local"] = 1;
  const auto add_function = [&](const std::string& name, const std::string& nodes) {
    onnx::FunctionDefinition function;
    function.key = {"local", name, ""};
    function.body->opset_imports = {{"", 17}, {"local", 1}};
    function.body->add_input("a");
    parse_nodes(*function.body, nodes, {"b"}, nullptr);
    model.functions.emplace(function.key, std::move(function));
  };
  add_function("Inner", "d = Cast<to=double>(a)\ne = Mul(d, d)\nb = Cast<to=float>(e)");
  add_function("Outer", "b = local::Inner(a)");
  infer_shapes(model);
  EXPECT_THAT(f64_warning(model), Optional(testing::EndsWith("(Mul)")));
}

/// TensorRT makes the largest number of f32 of such a number, and ONNX's Cast makes an infinity of it.
TEST(F64Nodes, AreReportedWithConstantsThatF32DoesNotHave) {
  const auto reading = [](const std::string& number) {
    return warning_of("c = Constant<value=double([1.0, " + number + "])>()\ne = Cast<to=float>(c)\n" +
                      "s = ReduceSum<keepdims=0>(e)\ny = Mul(x, s)");
  };
  EXPECT_THAT(reading("1e300"),
              Optional(testing::EndsWith("the maximum of f32 is 3.4e38, and larger values are in 'c'")));
  EXPECT_THAT(reading("-1e39"), Optional(testing::EndsWith("larger values are in 'c'")));
  EXPECT_EQ(reading("3.4e38"), std::nullopt);
  EXPECT_EQ(reading("inf"), std::nullopt);
}

TEST(F64Nodes, IncludeCastsOfIntegers) {
  EXPECT_THAT(warning_of("d = Cast<to=double>(x)\ny = Cast<to=float>(d)", ElementType::i64),
              Optional(testing::EndsWith("node 'd' (Cast)")));
}

TEST(F64Nodes, AreCountedBeyondTheFirstFive) {
  std::string nodes = "a0 = Cast<to=double>(x)\n";
  for (int i = 0; i < 7; ++i) nodes += fmt::format("a{} = Abs(a{})\n", i + 1, i);
  EXPECT_THAT(warning_of(nodes + "y = Cast<to=float>(a7)"),
              Optional(testing::EndsWith("node 'a5' (Abs) and 2 more nodes")));
}

}  // namespace
}  // namespace graft::inspect

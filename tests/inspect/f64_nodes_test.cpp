// Tests which nodes are reported as computing in f64.
#include "inspect/f64_nodes.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <optional>
#include <string>

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
  EXPECT_THAT(warning_of("y = Transpose(x)", ElementType::f64),
              Optional(StrEq("test.onnx: TensorRT computes f64 in f32, to about 7 digits: an engine has f32 for 'x', "
                             "'y' of the model")));
}

TEST(F64Nodes, AreNoneWhereElementsAreOnlyMoved) {
  EXPECT_EQ(warning_of("y = Mul(x, x)"), std::nullopt);
  EXPECT_EQ(warning_of("d = Cast<to=double>(x)\ne = Transpose(d)\ny = Cast<to=float>(e)"), std::nullopt);
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

// The table of what engines get wrong: its conditions, and that each of its lines can be read.
#include "verify/known_faults.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "tests/support/text_model.hpp"

namespace graft::verify {
namespace {

using onnx::ElementType;
using test::text_model;
using test::TextInput;
using testing::AllOf;
using testing::HasSubstr;
using testing::StartsWith;

bool last_node_is(const onnx::Model& model, std::string_view condition) {
  return holds_of(condition, *model.graph().nodes().back());
}

TEST(KnownFaults, conditions) {
  const onnx::Model model =
      text_model({{"x", ElementType::f16, {2, 3}}, {"i", ElementType::i64}, test::weight("w", {3})},
                 "n = Neg(w)\ny = Some<mode=\"linear\", axis=1, alpha=0.5>(x, i, n, _, w)", {"y"});
  for (const char* holds :
       {"", "mode=linear", "axis=1", "alpha=0.5", "beta=absent", "given(0)", "constant(2)", "constant(4)",
        "type(0)=f16", "rank(0)=2", "rank(1)=7", "mode=linear, type(1)=i64, given(4)"}) {
    EXPECT_TRUE(last_node_is(model, holds)) << holds;
  }
  for (const char* fails : {"mode=cubic", "mode=absent", "axis=2", "given(3)", "given(5)", "constant(0)", "constant(3)",
                            "type(0)=f32", "rank(0)=3", "mode=linear, given(3)", "type(3)=f32", "given"}) {
    EXPECT_FALSE(last_node_is(model, fails)) << fails;
  }
}

/// A gathered constant is computed once, and a sum after it is written over it.
TEST(KnownFaults, of_the_table) {
  ASSERT_FALSE(known_faults().empty());
  for (const KnownFault& fault : known_faults()) {
    EXPECT_TRUE(fault.engine == "OpenVINO" || fault.engine == "ONNX Runtime") << fault.engine;
    EXPECT_FALSE(fault.version.empty() || fault.op.empty() || fault.evidence.empty()) << fault.op;
  }
  const std::string gather = "g = GatherND(w, i)\ny = Add(g, x)";
  const TextInput indices{"i", onnx::TensorData::from_numbers(ElementType::i64, {2, 1}, {0, 1})};
  const onnx::Model constant =
      text_model({{"x", ElementType::f32, {2}}, test::weight("w", {3}), indices}, gather, {"y"});
  EXPECT_THAT(known_fault_of(constant, "OpenVINO 2026.4.1"),
              AllOf(StartsWith("node 'g' (GatherND), which OpenVINO is known to compute wrongly where"),
                    HasSubstr("constant(0)")));
  EXPECT_EQ(known_fault_of(constant, "ONNX Runtime 1.31.1"), "");
  const onnx::Model given =
      text_model({{"x", ElementType::f32, {2}}, {"w", ElementType::f32, {3}}, indices}, gather, {"y"});
  EXPECT_EQ(known_fault_of(given, "OpenVINO 2026.4.1"), "");
}

}  // namespace
}  // namespace graft::verify

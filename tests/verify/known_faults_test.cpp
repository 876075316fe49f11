// Tests the table of known faults of engines: its conditions, and that each of its lines can be parsed.
#include "verify/judge/known_faults.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <string>
#include <utility>

#include "onnx/functions.hpp"
#include "tests/support/text_model.hpp"

namespace graft::verify::known_faults_test {
namespace {

using onnx::ElementType;
using test::text_model;
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
        "computed(0)", "computed(1)", "type(0)=f16", "rank(0)=2", "rank(1)=7", "mode=linear, type(1)=i64, given(4)"}) {
    EXPECT_TRUE(last_node_is(model, holds)) << holds;
  }
  for (const char* fails :
       {"mode=cubic", "mode=absent", "axis=2", "given(3)", "given(5)", "constant(0)", "constant(3)", "computed(2)",
        "computed(3)", "type(0)=f32", "rank(0)=3", "mode=linear, given(3)", "type(3)=f32", "given"}) {
    EXPECT_FALSE(last_node_is(model, fails)) << fails;
  }
}

TEST(KnownFaults, scales_that_make_no_integers) {
  const auto resized = [](const std::string& scales, const Dim& batch) {
    return text_model({{"x", ElementType::f32, {batch, 1, 4, 6}}},
                      "s = Constant<value_floats=[" + scales + "]>()\ny = Resize(x, _, s)", {"y"});
  };
  const Dim open = Dim::symbol("N");
  for (const char* integers : {"1.0, 1.0, 2.0, 1.5", "1.0, 1.0, 0.25, 1.3333334"}) {
    EXPECT_FALSE(last_node_is(resized(integers, 3), "fraction(2)")) << integers;
    EXPECT_FALSE(last_node_is(resized(integers, open), "fraction(2)")) << integers;
  }
  EXPECT_TRUE(last_node_is(resized("1.0, 1.0, 2.0, 0.6", 3), "fraction(2)"));
  EXPECT_TRUE(last_node_is(resized("0.5, 1.0, 2.0, 2.0", open), "fraction(2)")) << "of a size that is not known";
  const onnx::Model computed =
      text_model({{"x", ElementType::f32, {1, 1, 4, 6}}, {"s", ElementType::f32, {4}}}, "y = Resize(x, _, s)", {"y"});
  EXPECT_TRUE(last_node_is(computed, "fraction(2)"));
  EXPECT_FALSE(last_node_is(computed, "fraction(3)"));
}

TEST(KnownFaults, of_the_table) {
  ASSERT_FALSE(known_fault_table().empty());
  for (const KnownFault& fault : known_fault_table()) {
    EXPECT_TRUE(fault.engine == "OpenVINO" || fault.engine == "ONNX Runtime") << fault.engine;
    EXPECT_FALSE(fault.version.empty() || fault.op.empty() || fault.evidence.empty()) << fault.op;
  }
  const auto regions = [](const std::string& mode) {
    return text_model(
        {{"x", ElementType::f32, {1, 2, 8, 8}}, {"boxes", ElementType::f32, {3, 4}}, {"i", ElementType::i64, {3}}},
        "y = RoiAlign<mode=\"" + mode + "\">(x, boxes, i)", {"y"});
  };
  EXPECT_THAT(known_faults().of(regions("max"), "OpenVINO 2026.4.1"),
              AllOf(StartsWith("node 'y' (RoiAlign), which OpenVINO is known to compute wrongly where"),
                    HasSubstr("mode=max")));
  EXPECT_EQ(known_faults().of(regions("avg"), "OpenVINO 2026.4.1"), "");
  EXPECT_EQ(known_faults().of(regions("max"), "ONNX Runtime 1.31.1"), "");
}

/// Undeclared types and shapes are inferred before a node counts as faulty, also inside functions.
TEST(KnownFaults, of_models) {
  const auto table = std::to_array<KnownFault>({{"One", "1", "Neg", "rank(0)=3", "a test"}});
  const KnownFaults faults(table);
  const onnx::Model inferred = text_model({{"x", ElementType::f32, {2, 3}}}, "a = Abs(x)\ny = Neg(a)", {"y"});
  EXPECT_NE(faults.of(*inferred.graph().nodes().back(), "One 1"), "") << "the rank of a is not in the model";
  EXPECT_EQ(faults.of(inferred, "One 1"), "");
  const onnx::Model deep = text_model({{"x", ElementType::f32, {2, 3, 4}}}, "a = Abs(x)\ny = Neg(a)", {"y"});
  EXPECT_EQ(faults.of(deep, "One 1"), "node 'y' (Neg), which One is known to compute wrongly where rank(0)=3");
  EXPECT_EQ(faults.of(deep, "Two 1"), "");
  const onnx::Model unknown = text_model({{"x", ElementType::f32}}, "y = Neg(x)", {"y"});
  EXPECT_THAT(faults.of(unknown, "One"), StartsWith("node 'y' (Neg)"));

  onnx::Model called = text_model({{"x", ElementType::f32, {2, 3, 4}}}, "y = local::Negative(x)", {"y"});
  onnx::FunctionDefinition function;
  function.key = {"local", "Negative", ""};
  function.body->opset_imports[""] = 17;
  function.body->add_input("a");
  parse_nodes(*function.body, "b = Neg(a)", {"b"}, nullptr);
  called.functions.emplace(function.key, std::move(function));
  EXPECT_THAT(faults.of(called, "One"), HasSubstr("(Neg), which One is known to compute wrongly"));
}

}  // namespace
}  // namespace graft::verify::known_faults_test

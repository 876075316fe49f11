// Tests the table of known faults of engines: its conditions, and that each of its lines can be parsed.
#include "verify/judge/known_faults.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <regex>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "onnx/functions.hpp"
#include "tests/support/text_model.hpp"

namespace graft::verify::known_faults_test {
namespace {

using onnx::ElementType;
using test::text_model;
using testing::AllOf;
using testing::EndsWith;
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
              AllOf(StartsWith("node 'y' (RoiAlign), which OpenVINO is known to compute wrongly: its values are wrong "
                               "where `mode` is max (found in OpenVINO "),
                    EndsWith(")")));
  EXPECT_EQ(known_faults().of(regions("avg"), "OpenVINO 2026.4.1"), "");
  EXPECT_EQ(known_faults().of(regions("max"), "ONNX Runtime 1.31.1"), "");
}

/// The notation of the table does not reach the reader of a message.
TEST(KnownFaults, in_words) {
  const onnx::Model model =
      text_model({{"x", ElementType::f16, {Dim::symbol("N"), 3}}, {"s", ElementType::f32, {2}}, test::weight("w", {3})},
                 "d = Identity(x)\nu = Unknown(s)\n"
                 "a = Neg(s)\nb = Neg(a)\nc = Neg(b)\ne = Neg(c)\nf = Neg(e)\ng = Neg(f)\nh = Neg(g)\ni = Neg(h)\n"
                 "far = Neg(i)\ny = Some<mode=\"linear\">(d, s, w, u, far)",
                 {"y"});
  const std::vector<std::pair<std::string_view, std::string>> clauses = {
      {"", ""},
      {"mode=linear", " where `mode` is linear"},
      {"axis=absent", " where `axis` is not set"},
      {"given(1)", " where input 1 ('s') is connected"},
      {"constant(2)", " where input 2 ('w') is computed from constants only"},
      {"computed(1)", " where input 1 ('s') is not a constant"},
      {"dynamic(0)", " where a size of input 0 ('d') is not fixed in the model"},
      {"type(1)=f32", " where input 1 ('s') has the type f32"},
      {"rank(2)=1", " where input 2 ('w') has 1 dimension"},
      {"fraction(1)", " where the sizes of input 0 ('d') times the scales, input 1 ('s'), may not be integers"},
      {"type(3)=f16", " where input 3 ('u') may have the type f16"},
      {"rank(3)=3", " where input 3 ('u') may have 3 dimensions"},
      {"constant(4)", " where input 4 ('far') may be computed from constants only"},
      {"mode=linear, given(1)", " where `mode` is linear and input 1 ('s') is connected"},
      {"mode=linear, given(1), axis=absent",
       " where `mode` is linear, input 1 ('s') is connected and `axis` is not set"}};
  for (const auto& [condition, words] : clauses) {
    const auto table = std::to_array<KnownFault>({{"One", "1.2", "Some", condition, "a_test: Not equal"}});
    EXPECT_EQ(
        KnownFaults(table).of(*model.graph().nodes().back(), "One"),
        "node 'y' (Some), which One is known to compute wrongly: its values are wrong" + words + " (found in One 1.2)");
  }
  const auto resized = [](const Dim& size) {
    const onnx::Model resize = text_model(
        {{"x", ElementType::f32, {size}}, {"s", onnx::TensorData::from_floats({1.5F})}}, "y = Resize(x, _, s)", {"y"});
    const auto of_scales = std::to_array<KnownFault>({{"One", "1", "Resize", "fraction(2)", "a_test: Not equal"}});
    return KnownFaults(of_scales).of(*resize.graph().nodes().back(), "One");
  };
  EXPECT_THAT(resized(3), HasSubstr("times the scales, input 2 ('s'), are not integers"));
  EXPECT_THAT(resized(Dim::symbol("h")), HasSubstr("times the scales, input 2 ('s'), may not be integers"));
  const onnx::Model after_loop = text_model({{"x", ElementType::f32, {2}}}, "l = Loop(_, _, x)\ny = Some(l)", {"y"});
  const auto table =
      std::to_array<KnownFault>({{"One", "1", "Some", "control(0)", "a_test: shape (1, 2), expected is (1, 1)"}});
  EXPECT_EQ(KnownFaults(table).of(*after_loop.graph().nodes().back(), "One"),
            "node 'y' (Some), which One is known to compute wrongly: its output has a wrong shape where an If, Loop or "
            "Scan computes input 0 ('l') (found in One 1)");
}

/// A condition of a type that has another name in the library would hold for no node.
TEST(KnownFaults, types_of_the_table_have_names_of_the_library) {
  for (const KnownFault& fault : known_fault_table()) {
    std::smatch found;
    const std::string condition(fault.condition);
    if (!std::regex_search(condition, found, std::regex("type\\(\\d+\\)=(\\w+)"))) continue;
    const auto type = onnx::parse_element_type(found[1].str());
    ASSERT_TRUE(type) << condition;
    EXPECT_EQ(to_string(*type), found[1].str()) << condition;
  }
}

/// Undeclared types and shapes are inferred before a node counts as faulty, also inside functions.
TEST(KnownFaults, of_models) {
  const auto table = std::to_array<KnownFault>({{"One", "1", "Neg", "rank(0)=3", "a test"}});
  const KnownFaults faults(table);
  const onnx::Model inferred = text_model({{"x", ElementType::f32, {2, 3}}}, "a = Abs(x)\ny = Neg(a)", {"y"});
  EXPECT_NE(faults.of(*inferred.graph().nodes().back(), "One 1"), "") << "the rank of a is not in the model";
  EXPECT_EQ(faults.of(inferred, "One 1"), "");
  const onnx::Model deep = text_model({{"x", ElementType::f32, {2, 3, 4}}}, "a = Abs(x)\ny = Neg(a)", {"y"});
  EXPECT_EQ(faults.of(deep, "One 1"),
            "node 'y' (Neg), which One is known to compute wrongly: its values are wrong where input 0 ('a') has 3 "
            "dimensions (found in One 1)");
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

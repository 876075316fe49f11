// Tests the output of `graft convert` about its rewrites and nodes that do not run.
#include "present/text/convert_text.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <utility>

#include "graft/toolkit/commands.hpp"
#include "passes/report.hpp"
#include "present/json/convert_json.hpp"
#include "present/text/next_steps_text.hpp"
#include "tests/support/text_model.hpp"
#include "toolkit/access.hpp"
#include "toolkit/compare_models.hpp"
#include "toolkit/value_check.hpp"

namespace graft::present {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::ResultOf;

NodeRef node(const std::string& name, const std::string& op) {
  return {.id = name + "_out", .name = name, .op = op, .domain = ""};
}

report::Rewrite rewrite(std::vector<NodeRef> nodes, std::string others = "") {
  return {.pass = "fuse_something",
          .nodes = std::move(nodes),
          .others = std::move(others),
          .replacement = "Something",
          .reason = "it is the same",
          .proof = ""};
}

report::NodeSupport verdict(const std::string& name, const std::string& op, report::Support verdict) {
  return {.node = node(name, op), .op = op, .support = verdict, .reason = "no reason", .advice = "none"};
}

std::string text_of(const Table& table) { return table.text(false, 200); }

TEST(ConvertText, nodes_are_described_after_what_is_no_node) {
  EXPECT_THAT(rewrite({node("a", "Div"), node("it's", "Mul")}, "more nodes before them").replaced(),
              ElementsAre("more nodes before them", "node 'a' (Div)", "node 'it's' (Mul)"));
}

TEST(ConvertText, rewrites_that_are_alike_share_a_line_unless_verbose) {
  report::RewriteReport report;
  report.passes = {{.pass = "fuse_something", .why = "", .rewrites = 2, .seconds = 0}};
  report.rewrites = {rewrite({node("a", "Div")}), rewrite({node("b", "Div")})};
  EXPECT_THAT(text_of(rewrites_table(report, false)), HasSubstr("node 'a' (Div) -> Something, 2 times"));
  EXPECT_THAT(text_of(rewrites_table(report, true)), HasSubstr("node 'b' (Div) -> Something"));
}

TEST(ConvertText, of_near_misses_the_nearest_place_of_each_pattern_stands_first_and_the_far_ones_are_counted) {
  const auto near = [](const std::string& pattern, const std::string& name, std::size_t matched, bool is_of_library) {
    return report::NearMiss{.pass = is_of_library ? "fuse_library_operators" : "fuse_something",
                            .pattern = pattern,
                            .node = node(name, "Mul"),
                            .matched_nodes = matched,
                            .pattern_nodes = 4,
                            .reason = "no reason",
                            .is_of_library = is_of_library};
  };
  report::RewriteReport report;
  report.near_misses = {near("far", "a", 1, false), near("half", "b", 2, false), near("most", "c", 3, false),
                        near("half", "d", 2, false), near("own", "e", 1, true)};
  std::stable_sort(report.near_misses.begin(), report.near_misses.end(), passes::is_nearer);
  std::vector<std::string> order;
  for (const report::NearMiss& each : report.near_misses) order.push_back(each.node.name);
  EXPECT_THAT(order, ElementsAre("e", "c", "b", "d", "a"));
  const std::string few = text_of(near_misses_table(report, false));
  EXPECT_THAT(few, AllOf(HasSubstr("own at node 'e' (Mul), 1 of 4 nodes matched"), HasSubstr("most at node 'c'"),
                         HasSubstr("half at node 'b'"), HasSubstr("and 2 more places; -v lists them")));
  EXPECT_THAT(few, AllOf(Not(HasSubstr("node 'd'")), Not(HasSubstr("node 'a'"))));
  EXPECT_THAT(text_of(near_misses_table(report, true)),
              AllOf(HasSubstr("node 'd'"), HasSubstr("far at node 'a'"), Not(HasSubstr("more place"))));
}

TEST(ConvertText, what_is_merged_with_a_node_that_does_not_run_does_not_run_now) {
  report::ConvertReport conversion;
  for (const char* name : {"a", "b", "c"}) {
    conversion.failed_before.push_back(verdict(name, "NonZero", report::Support::unsupported));
  }
  conversion.nodes = {verdict("a", "NonZero", report::Support::unsupported)};
  conversion.rewrites = {rewrite({node("b", "NonZero")})};
  conversion.rewrites.front().pass = "merge_equal_nodes";
  EXPECT_EQ(newly_running_text(conversion),
            "by Graft's rules, TensorRT now runs nodes that it did not run before: NonZero")
      << "c alone";
  conversion.failed_before.pop_back();
  EXPECT_EQ(newly_running_text(conversion), "");
}

TEST(ConvertText, a_node_that_stayed_does_not_run_now_in_a_network_that_does_not_build) {
  report::ConvertReport conversion;
  conversion.failed_before = {verdict("a", "NonZero", report::Support::unsupported)};
  conversion.nodes = {verdict("a", "NonZero", report::Support::native),
                      verdict("loop", "Loop", report::Support::unsupported)};
  EXPECT_EQ(newly_running_text(conversion), "");
}

TEST(ConvertText, a_function_does_not_run_now_if_a_node_of_its_body_does_not) {
  report::ConvertReport conversion;
  onnx::Model original;
  onnx::FunctionDefinition& function = original.functions[{.domain = "my", .name = "Act", .overload = ""}];
  function.body->add_node("Unique", {nullptr}, {"unique"});
  conversion.original = toolkit::ModelAccess::make(std::move(original));
  report::NodeSupport call = verdict("call", "my::Act", report::Support::unsupported);
  call.node.domain = "my";
  call.node.op = "Act";
  conversion.failed_before = {call};
  conversion.nodes = {verdict("call/unique", "Unique", report::Support::unsupported)};
  EXPECT_EQ(newly_running_text(conversion), "");
  conversion.nodes = {verdict("call/unique", "Relu", report::Support::native)};
  EXPECT_EQ(newly_running_text(conversion),
            "by Graft's rules, TensorRT now runs nodes that it did not run before: my::Act");
}

TEST(ConvertText, operators_run_now_if_tensorrt_built_the_result_or_by_rule_if_it_was_not_run) {
  report::ConvertReport conversion;
  conversion.failed_before = {verdict("a", "GRU", report::Support::refused)};
  conversion.nodes = {verdict("b", "Transpose", report::Support::native)};
  EXPECT_EQ(newly_running_text(conversion),
            "by Graft's rules, TensorRT now runs nodes that it did not run before: GRU");
  conversion.check.emplace();
  EXPECT_EQ(newly_running_text(conversion), "") << "TensorRT did not build the result";
  conversion.check->built = true;
  EXPECT_EQ(newly_running_text(conversion), "TensorRT now runs nodes that it did not run before: GRU");
}

TEST(ConvertText, values_that_differ_are_said_and_make_the_conversion_incomplete) {
  const auto scaled = [](double factor) {
    return test::text_model({{"x", onnx::ElementType::f32, {4}}},
                            fmt::format("factor = Constant<value_float={:.1f}>()\ny = Mul(x, factor)", factor), {"y"});
  };
  report::ConvertReport conversion;
  conversion.file = "in.onnx";
  conversion.output = "out.onnx";
  conversion.nodes = {verdict("a", "Mul", report::Support::native)};
  conversion.values = toolkit::check_values(scaled(2), scaled(2), {}, toolkit::CpuEngine::automatic, {});
  EXPECT_TRUE(conversion.is_complete());
  EXPECT_THAT(values_text(conversion), HasSubstr("the result and in.onnx are the same: 3 runs, computed by"));
  conversion.values = toolkit::check_values(scaled(2), scaled(2.1), {}, toolkit::CpuEngine::automatic, {});
  conversion.values.command = toolkit::verify_command({.model = "in.onnx"}, "out.onnx");
  EXPECT_FALSE(conversion.is_complete());
  EXPECT_THAT(values_text(conversion), HasSubstr("the result and in.onnx are not the same"));
  const std::vector<NextCommand> next = next_commands(conversion);
  ASSERT_EQ(next.size(), 1U);
  EXPECT_EQ(next.front().command, "graft verify in.onnx out.onnx --layers");
  EXPECT_EQ(convert_json(conversion)["values"]["verdict"], "not the same");
  conversion.values.report->dispute = report::Dispute{
      .model = "in.onnx", .first = "A", .second = "B", .output = "y", .node = {}, .tensor = "y", .difference = "much"};
  EXPECT_EQ(values_text(conversion),
            "no verdict on the written model: A and B disagree on in.onnx, output 'y': much\n"
            "--engine openvino and --engine onnxruntime show the result of each engine");
}

TEST(ConvertText, a_comparison_that_would_fail_again_is_not_suggested) {
  report::ConvertReport conversion;
  conversion.file = "in.onnx";
  conversion.output = "out.onnx";
  conversion.nodes = {verdict("a", "Mul", report::Support::native)};
  conversion.values.failure = "no engine has this operator";
  const auto verifies = [](const NextCommand& next) { return next.command.starts_with("graft verify"); };
  std::vector<NextCommand> next = next_commands(conversion);
  EXPECT_THAT(next, Not(Contains(ResultOf(verifies, true))));
  EXPECT_EQ(convert_json(conversion)["values"]["command"], "");
  conversion.values.is_over_budget = true;
  conversion.values.command = toolkit::verify_command({.model = "in.onnx"}, "out.onnx");
  next = next_commands(conversion);
  EXPECT_THAT(next, Contains(ResultOf(verifies, true))) << "the limits of `graft verify` are larger";
}

TEST(ConvertText, weights_that_no_output_shows_are_searched_for_by_verify_alone) {
  const auto with_weight = [](double weight) {
    onnx::Model model = test::text_model({{"x", onnx::ElementType::f32, {4}}, {"w", onnx::ElementType::f32, {1}}},
                                         "zero = Constant<value_float=0.0>()\nm = Mul(w, zero)\ny = Add(x, m)", {"y"});
    onnx::Value& value = *model.graph().find("w");
    model.graph().set_is_input(value, false);
    model.graph().set_initializer(value, onnx::TensorData::from_numbers(onnx::ElementType::f32, {1}, {weight}));
    return model;
  };
  const toolkit::ValueCheck check =
      toolkit::check_values(with_weight(2), with_weight(3), {}, toolkit::CpuEngine::automatic, {});
  ASSERT_TRUE(check.is_good()) << check.failure;
  EXPECT_THAT(check.report->unreached, IsEmpty());
  const report::VerifyReport compared =
      toolkit::compare_outputs(with_weight(2), with_weight(3), toolkit::engine_options({}), {}, {});
  EXPECT_THAT(compared.unreached, ElementsAre(HasSubstr("the weights 'w' differ in 1 of 1 elements")));
}

TEST(ConvertText, rejected_rewrites_of_rules_are_no_warnings_of_their_own) {
  report::RewriteReport report;
  report.rejected = {rewrite({node("a", "Div")}), rewrite({node("b", "Div")})};
  report.rejected[0].proof = "y differs";
  report.rejected[1].pass = "rules_first";
  report.rejected[0].replacement = "Swish<>";
  EXPECT_THAT(passes::rejection_warnings(report),
              ElementsAre("fuse_something: the replacement of node 'a' (Div) by Swish<> was not applied: y differs"));
  report.rejected.push_back(report.rejected[0]);
  report.rejected.back().nodes = {node("c", "Div")};
  EXPECT_THAT(passes::rejection_warnings(report),
              ElementsAre("fuse_something: the replacement of node 'a' (Div) by Swish<>, and at 1 more place, was not "
                          "applied: y differs"));
  report.rejected.pop_back();
  report.rejected[0].place = "swish_fusion.yaml:2:3";
  EXPECT_THAT(
      passes::rejection_warnings(report),
      ElementsAre("fuse_something: the replacement of node 'a' (Div) by Swish<> (swish_fusion.yaml:2:3) was not "
                  "applied: y differs"));
}

TEST(ConvertText, problems_of_one_operator_and_reason_share_a_row) {
  std::vector<report::NodeSupport> nodes;
  for (const char* name : {"a", "b", "c", "d", "e"}) {
    nodes.push_back(verdict(name, "Det", report::Support::unsupported));
  }
  nodes.push_back(verdict("f", "Unique", report::Support::unknown));
  EXPECT_EQ(problems_title(nodes, report::Support::unsupported), "5 nodes that neither TensorRT nor Graft runs");
  const std::string text = text_of(problems_table(nodes, report::Support::unsupported));
  EXPECT_THAT(text, HasSubstr("a, b, c, d and 1 more"));
  EXPECT_THAT(text, Not(HasSubstr("Unique")));
  EXPECT_EQ(problems_title({}, report::Support::unknown), "");
  nodes.front().cause = report::computed_wrongly;
  EXPECT_EQ(problems_title(nodes, report::Support::unsupported),
            "5 nodes that neither TensorRT nor Graft computes correctly");
}

TEST(ConvertJson, nodes_are_texts_and_verdicts_are_apart) {
  report::ConvertReport conversion;
  conversion.file = "in.pb";
  conversion.rewrites = {rewrite({node("a", "Div")}, "tensor 'x'")};
  conversion.nodes = {verdict("f", "Unique", report::Support::unknown)};
  const Json json = convert_json(conversion);
  EXPECT_EQ(json["rewrites"][0]["nodes"], Json({"tensor 'x'", "node 'a' (Div)"}));
  EXPECT_EQ(json["unknown"][0]["node"], "f");
  EXPECT_TRUE(json["unsupported"].empty());
  EXPECT_TRUE(json["runs"].is_null());
  EXPECT_TRUE(json["origin"].is_null());
}

}  // namespace
}  // namespace graft::present

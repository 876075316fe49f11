// Tests verdicts by rule, and the groups in which they are shown.
#include "inspect/verdicts.hpp"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "inspect/verdict_groups.hpp"
#include "tests/support/text_model.hpp"

namespace graft::inspect {
namespace {

onnx::Model model_with(const std::string& op_type, const std::string& domain = "") {
  const std::string prefix = domain.empty() ? "" : domain + "::";
  return test::text_model({{"x", onnx::ElementType::f32, {2, 4}}}, "y = " + prefix + op_type + "(x)", {"y"});
}

TEST(Verdicts, a_native_operator_needs_no_reason) {
  const std::vector<NodeVerdict> nodes = judge_nodes(model_with("Relu"));
  ASSERT_EQ(nodes.size(), 1U);
  EXPECT_EQ(nodes[0].node.id, "y");
  EXPECT_EQ(nodes[0].node.name, "y") << "it has no other name";
  EXPECT_EQ(nodes[0].op, "Relu");
  EXPECT_EQ(nodes[0].verdict, Verdict::native);
  EXPECT_EQ(nodes[0].reason, "");
  EXPECT_EQ(runs(nodes), true);
}

TEST(Verdicts, an_operator_that_the_parser_refuses_is_unsupported_unless_conversion_replaces_it) {
  const onnx::Model model = model_with("Det");
  EXPECT_EQ(judge_nodes(model)[0].verdict, Verdict::unsupported);
  EXPECT_EQ(runs(judge_nodes(model)), false);
  Forecast forecast;
  forecast.becomes[{.id = "renamed since", .name = "y", .op = "Det", .domain = ""}] = "something native";
  const NodeVerdict lowered = judge_nodes(model, forecast)[0];
  EXPECT_EQ(lowered.verdict, Verdict::lowered);
  EXPECT_EQ(lowered.advice, "something native");
}

TEST(Verdicts, a_node_of_which_it_is_not_known_is_not_called_native_because_conversion_replaces_it) {
  const onnx::Model model = model_with("RoiAlign");
  EXPECT_EQ(judge_nodes(model)[0].verdict, Verdict::unknown);
  Forecast forecast;
  forecast.becomes[{.id = "renamed since", .name = "y", .op = "RoiAlign", .domain = ""}] = "something native";
  const NodeVerdict lowered = judge_nodes(model, forecast)[0];
  EXPECT_EQ(lowered.verdict, Verdict::lowered);
  EXPECT_EQ(lowered.reason, judge_nodes(model)[0].reason);
  EXPECT_EQ(lowered.advice, "something native");
}

TEST(Verdicts, a_slip_in_a_name_is_answered_with_the_name_that_was_meant) {
  const NodeVerdict slip = judge_nodes(model_with("HardSwich"))[0];
  EXPECT_EQ(slip.verdict, Verdict::unsupported);
  EXPECT_NE(slip.reason.find("did you mean ONNX's HardSwish?"), std::string::npos) << slip.reason;
}

TEST(Verdicts, a_plugin_that_no_library_is_known_to_have_is_not_promised) {
  onnx::Model model = model_with("SomebodysLayer", "theirs");
  model.graph().nodes().front()->attributes["plugin_version"] =
      onnx::NodeAttribute(onnx::AttributeData(std::string("1")));
  const NodeVerdict theirs = judge_nodes(model)[0];
  EXPECT_EQ(theirs.op, "theirs::SomebodysLayer");
  EXPECT_EQ(theirs.verdict, Verdict::unknown);
  EXPECT_NE(theirs.reason.find("the plugin SomebodysLayer version 1"), std::string::npos) << theirs.reason;
}

NodeVerdict verdict(const std::string& name, const std::string& op, Verdict verdict, const std::string& reason = "") {
  return {.node = {.id = name, .name = name, .op = op, .domain = ""},
          .op = op,
          .verdict = verdict,
          .reason = reason,
          .advice = ""};
}

TEST(VerdictGroups, problems_go_by_operator_and_the_rest_by_reason) {
  const std::vector<NodeVerdict> nodes = {
      verdict("c", "Constant", Verdict::native),
      verdict("a", "Conv", Verdict::native),
      verdict("b", "Relu", Verdict::native),
      verdict("d", "Det", Verdict::unsupported, "one"),
      verdict("e", "Det", Verdict::unsupported, "other"),
      verdict("f", "Unique", Verdict::refused),
      verdict("g", "Relu", Verdict::lowered, "why"),
      verdict("h", "Conv", Verdict::native),
      verdict("i", "Abs", Verdict::not_asked, "behind"),
      verdict("j", "Neg", Verdict::not_asked, "behind it"),
  };
  const VerdictGroups groups = group_verdicts(nodes, false);
  ASSERT_EQ(groups.problems.size(), 3U);
  EXPECT_EQ(groups.problems[0].first().op, "Unique") << "the worst first";
  EXPECT_EQ(groups.problems[1].nodes.size(), 2U);
  EXPECT_EQ(count_reasons(groups.problems[1]), 2U);
  EXPECT_EQ(groups.problems[2].nodes.size(), 2U) << "whatever the operators after a node that does not run";
  ASSERT_EQ(groups.others.size(), 1U);
  ASSERT_EQ(groups.plain.size(), 1U);
  const auto counts = count_operators(groups.plain[0]);
  ASSERT_EQ(counts.size(), 2U);
  EXPECT_EQ(counts[0], std::pair(std::string("Conv"), std::size_t{2}));
}

TEST(VerdictGroups, every_node_is_a_group_where_that_is_asked_for) {
  const std::vector<NodeVerdict> nodes = {verdict("a", "Conv", Verdict::native), verdict("b", "Conv", Verdict::native)};
  EXPECT_EQ(group_verdicts(nodes, true).plain.size(), 2U);
  EXPECT_EQ(group_verdicts(nodes, false).plain.size(), 1U);
}

}  // namespace
}  // namespace graft::inspect

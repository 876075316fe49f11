// Tests verdicts by rule, and the groups in which they are shown.
#include "inspect/verdicts.hpp"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "core/verdict_groups.hpp"
#include "tests/support/text_model.hpp"

namespace graft::inspect {
namespace {

using report::VerdictGroups;

onnx::Model model_with(const std::string& op_type, const std::string& domain = "") {
  const std::string prefix = domain.empty() ? "" : domain + "::";
  return test::text_model({{"x", onnx::ElementType::f32, {2, 4}}}, "y = " + prefix + op_type + "(x)", {"y"});
}

TEST(Verdicts, a_native_operator_needs_no_reason) {
  const std::vector<NodeSupport> nodes = judge_nodes(model_with("Relu"));
  ASSERT_EQ(nodes.size(), 1U);
  EXPECT_EQ(nodes[0].node.id, "y");
  EXPECT_EQ(nodes[0].node.name, "y") << "it has no other name";
  EXPECT_EQ(nodes[0].op, "Relu");
  EXPECT_EQ(nodes[0].support, Support::native);
  EXPECT_EQ(nodes[0].reason, "");
  EXPECT_EQ(runs(nodes), true);
}

TEST(Verdicts, an_operator_that_the_parser_refuses_is_unsupported_unless_conversion_replaces_it) {
  const onnx::Model model = model_with("Det");
  EXPECT_EQ(judge_nodes(model)[0].support, Support::unsupported);
  EXPECT_EQ(runs(judge_nodes(model)), false);
  Forecast forecast;
  forecast.becomes[{.id = "renamed since", .name = "y", .op = "Det", .domain = ""}] = "something native";
  const NodeSupport lowered = judge_nodes(model, forecast)[0];
  EXPECT_EQ(lowered.support, Support::lowered);
  EXPECT_EQ(lowered.advice, "something native");
}

TEST(Verdicts, a_node_of_which_it_is_not_known_is_not_called_native_because_conversion_replaces_it) {
  const onnx::Model model = model_with("RoiAlign");
  EXPECT_EQ(judge_nodes(model)[0].support, Support::unknown);
  Forecast forecast;
  forecast.becomes[{.id = "renamed since", .name = "y", .op = "RoiAlign", .domain = ""}] = "something native";
  const NodeSupport lowered = judge_nodes(model, forecast)[0];
  EXPECT_EQ(lowered.support, Support::lowered);
  EXPECT_EQ(lowered.reason, judge_nodes(model)[0].reason);
  EXPECT_EQ(lowered.advice, "something native");
}

TEST(Verdicts, a_slip_in_a_name_is_answered_with_the_name_that_was_meant) {
  const NodeSupport slip = judge_nodes(model_with("HardSwich"))[0];
  EXPECT_EQ(slip.support, Support::unsupported);
  EXPECT_NE(slip.reason.find("did you mean ONNX's HardSwish?"), std::string::npos) << slip.reason;
}

TEST(Verdicts, a_name_is_meant_only_where_the_node_fits_that_operator) {
  onnx::Model attribute = model_with("HardSwich");
  attribute.graph().nodes().front()->attributes["alpha"] = onnx::NodeAttribute(onnx::AttributeData(0.5F));
  onnx::Model inputs = test::text_model({{"x", onnx::ElementType::f32, {2, 4}}}, "y = HardSwich(x, x)", {"y"});
  for (const onnx::Model& model : {attribute.clone(), inputs.clone(), model_with("HardSwich", "com.microsoft")}) {
    const NodeSupport unknown = judge_nodes(model)[0];
    EXPECT_EQ(unknown.support, Support::unsupported);
    EXPECT_EQ(unknown.reason.find("did you mean"), std::string::npos) << unknown.reason;
    EXPECT_EQ(unknown.advice.find("HardSwish"), std::string::npos) << unknown.advice;
  }
}

TEST(Verdicts, a_plugin_that_no_library_is_known_to_have_is_not_promised) {
  onnx::Model model = model_with("SomebodysLayer", "theirs");
  model.graph().nodes().front()->attributes["plugin_version"] =
      onnx::NodeAttribute(onnx::AttributeData(std::string("1")));
  const NodeSupport theirs = judge_nodes(model)[0];
  EXPECT_EQ(theirs.op, "theirs::SomebodysLayer");
  EXPECT_EQ(theirs.support, Support::unknown);
  EXPECT_NE(theirs.reason.find("the plugin SomebodysLayer version 1"), std::string::npos) << theirs.reason;
}

NodeSupport verdict(const std::string& name, const std::string& op, Support verdict, const std::string& reason = "") {
  return {.node = {.id = name, .name = name, .op = op, .domain = ""},
          .op = op,
          .support = verdict,
          .reason = reason,
          .advice = ""};
}

TEST(VerdictGroups, problems_go_by_operator_and_the_rest_by_reason) {
  const std::vector<NodeSupport> nodes = {
      verdict("c", "Constant", Support::native),
      verdict("a", "Conv", Support::native),
      verdict("b", "Relu", Support::native),
      verdict("d", "Det", Support::unsupported, "one"),
      verdict("e", "Det", Support::unsupported, "other"),
      verdict("f", "Unique", Support::refused),
      verdict("g", "Relu", Support::lowered, "why"),
      verdict("h", "Conv", Support::native),
      verdict("i", "Abs", Support::not_asked, "behind"),
      verdict("j", "Neg", Support::not_asked, "behind it"),
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
  const std::vector<NodeSupport> nodes = {verdict("a", "Conv", Support::native), verdict("b", "Conv", Support::native)};
  EXPECT_EQ(group_verdicts(nodes, true).plain.size(), 2U);
  EXPECT_EQ(group_verdicts(nodes, false).plain.size(), 1U);
}

}  // namespace
}  // namespace graft::inspect

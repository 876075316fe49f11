// Tests which nodes a probe finds and how many trials it needs, with a stand-in for TensorRT.
#include "inspect/tensorrt_probe.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "onnx/shape_inference.hpp"
#include "stand_in_trials.hpp"
#include "tests/support/text_model.hpp"

namespace graft::inspect {
namespace {

/// Returns a chain of f32 nodes in which each node has the name of its output.
onnx::Model named_model(const std::string& text, const std::vector<std::string>& outputs) {
  onnx::Model model = test::text_model({{"x", onnx::ElementType::f32, Shape{2, 4}}}, text, outputs);
  infer_shapes(model);
  model.graph().for_each_node([](onnx::Node& node) { node.name = node.output()->name; });
  return model;
}

ProbeReport report_of(onnx::Model& model, StandInTrials& trials, Judge level) {
  SizeRanges ranges(model, {});
  return TensorRTProbe(model, trials, ranges).run(level);
}

std::vector<std::string> names_in(const ProbeReport& report) {
  std::vector<std::string> names;
  for (const Finding& finding : report.findings) {
    for (const onnx::Node* node : finding.nodes) names.push_back(node->name);
  }
  std::sort(names.begin(), names.end());
  return names;
}

using Names = std::vector<std::string>;

TEST(TensorRTProbe, what_runs_is_asked_about_once) {
  onnx::Model model = named_model("a = Relu(x)\nb = Neg(a)", {"b"});
  StandInTrials trials;
  const ProbeReport report = report_of(model, trials, Judge::builder);
  EXPECT_TRUE(report.findings.empty());
  EXPECT_EQ(report.pieces, 1U);
  EXPECT_EQ(trials.parses, 1U);
  EXPECT_EQ(trials.builds, 1U);
}

TEST(TensorRTProbe, a_model_that_builds_at_once_is_not_parsed_before) {
  onnx::Model model = named_model("a = Relu(x)\nb = Neg(a)", {"b"});
  StandInTrials trials;
  SizeRanges ranges(model, {});
  const ProbeReport report =
      TensorRTProbe(model, trials, ranges).run(Judge::builder, TensorRTProbe::Order::whole_first);
  EXPECT_TRUE(report.findings.empty());
  EXPECT_EQ(report.pieces, 1U);
  EXPECT_EQ(trials.parses, 0U);
  EXPECT_EQ(trials.builds, 1U);
}

TEST(TensorRTProbe, the_first_build_of_the_whole_is_not_repeated_after_the_parser) {
  onnx::Model model = named_model("a = Relu(x)\nb = Abs(a)", {"b"});
  StandInTrials trials;
  trials.failing = {"Abs"};
  SizeRanges ranges(model, {});
  const ProbeReport report = TensorRTProbe(model, trials, ranges).run(Judge::builder, TensorRTProbe::Order::whole_only);
  EXPECT_EQ(trials.parses, 1U);
  EXPECT_EQ(trials.builds, 1U);
  EXPECT_NE(report.pieces, 1U);
}

TEST(TensorRTProbe, every_node_that_the_parser_names_is_found_and_the_rest_is_asked_about_again) {
  onnx::Model model = named_model("a = Relu(x)\nb = Neg(a)\nc = Abs(b)\nd = Neg(c)", {"d"});
  StandInTrials trials;
  trials.refused = {"Neg"};
  const ProbeReport report = report_of(model, trials, Judge::parser);
  EXPECT_EQ(names_in(report), (Names{"b", "d"}));
  EXPECT_EQ(report.findings.front().outcome, Outcome::refused);
  EXPECT_NE(report.findings.front().words.find("no importer [kUNSUPPORTED_NODE, parseNode]"), std::string::npos);
  EXPECT_TRUE(report.not_asked.empty());
  EXPECT_EQ(trials.parses, 2U);
}

TEST(TensorRTProbe, a_node_that_the_builder_does_not_name_is_found_by_halves) {
  std::string text = "a0 = Relu(x)\n";
  for (int i = 1; i < 32; ++i) {
    text += "a" + std::to_string(i) + (i == 21 ? " = Abs(a" : " = Relu(a") + std::to_string(i - 1) + ")\n";
  }
  onnx::Model model = named_model(text, {"a31"});
  StandInTrials trials;
  trials.failing = {"Abs"};
  const ProbeReport report = report_of(model, trials, Judge::builder);
  EXPECT_EQ(names_in(report), Names{"a21"});
  EXPECT_EQ(report.findings.front().outcome, Outcome::failed);
  EXPECT_EQ(report.findings.front().words, "Could not build some layer");
  EXPECT_LE(trials.builds, 20U);
}

TEST(TensorRTProbe, a_node_that_the_builder_names_is_asked_about_first) {
  onnx::Model model = named_model("a = Relu(x)\nb = Relu(a)\nc = Abs(b)\nd = Relu(c)", {"d"});
  StandInTrials trials;
  trials.failing = {"Abs"};
  trials.names_failing = true;
  const ProbeReport report = report_of(model, trials, Judge::builder);
  EXPECT_EQ(names_in(report), Names{"c"});
  EXPECT_EQ(trials.builds, 3U) << "the whole, the node that is named, and what is left";
}

TEST(TensorRTProbe, nodes_that_fail_only_together_are_one_finding) {
  onnx::Model model = named_model("a = Relu(x)\nb = Abs(a)\nc = Relu(b)\nd = Neg(c)\ne = Relu(d)", {"e"});
  StandInTrials trials;
  trials.together = {"Abs", "Neg"};
  const ProbeReport report = report_of(model, trials, Judge::builder);
  ASSERT_EQ(report.findings.size(), 1U);
  EXPECT_EQ(names_in(report), (Names{"b", "d"}));
}

TEST(TensorRTProbe, nodes_that_build_with_other_sizes_are_not_blamed) {
  onnx::Model model = test::text_model({{"x", onnx::ElementType::f32, {Dim::symbol("n"), 4}}},
                                       "a = Relu(x)\nb = Abs(a)\nc = Neg(b)\nd = Relu(c)", {"d"});
  infer_shapes(model);
  model.graph().for_each_node([](onnx::Node& node) { node.name = node.output()->name; });
  SizeRanges ranges(model, {}, true);
  const std::string first = ranges.for_build(model).suggested->at("x").sizes;
  StandInTrials trials;
  trials.fails_for = [&](const onnx::Model& part, const BuildRanges& given) {
    const onnx::Graph& graph = part.graph();
    const bool has_both = graph.find_node("b") != nullptr && graph.find_node("c") != nullptr;
    return has_both || (graph.find_node("a") != nullptr && given.suggested->at("x").sizes == first);
  };
  const ProbeReport report =
      TensorRTProbe(model, trials, ranges).run(Judge::builder, TensorRTProbe::Order::whole_first);
  EXPECT_EQ(names_in(report), (Names{"b", "c"}));
  ASSERT_EQ(report.failing_ranges.size(), ranges.suggestion_count());
  EXPECT_EQ(report.failing_ranges.front(), "x=" + first);
}

TEST(TensorRTProbe, nodes_alike_to_one_that_ends_the_process_are_not_asked_about) {
  onnx::Model model = named_model("a = Abs(x)\nb = Abs(x)\nc = Abs(x)\nd = Add(a, b)\ne = Add(d, c)", {"e"});
  StandInTrials trials;
  trials.crashing = {"Abs"};
  const ProbeReport report = report_of(model, trials, Judge::builder);
  EXPECT_EQ(names_in(report), (Names{"a", "b", "c"}));
  const auto alike = std::count_if(report.findings.begin(), report.findings.end(), [](const Finding& finding) {
    return finding.outcome == Outcome::crashed && finding.as != nullptr;
  });
  EXPECT_EQ(alike, 2);
  EXPECT_EQ(report.findings.front().words, "the process ended by SIGSEGV; its last message: building");
}

TEST(TensorRTProbe, what_the_budget_leaves_without_an_answer_is_said) {
  onnx::Model model = named_model("a = Abs(x)\nb = Relu(a)", {"b"});
  StandInTrials trials;
  trials.failing = {"Abs"};
  trials.max_builds = 1;
  const ProbeReport report = report_of(model, trials, Judge::builder);
  EXPECT_EQ(report.over_budget.size(), 2U);
  for (const auto& [node, why] : report.not_asked) {
    EXPECT_EQ(why, "the budget is spent; some of the remaining nodes fail: Could not build some layer");
  }
}

TEST(TensorRTProbe, the_smallest_part_is_the_failing_node_alone) {
  onnx::Model model = named_model("a = Relu(x)\nb = Abs(a)\nc = Relu(b)", {"c"});
  StandInTrials trials;
  trials.failing = {"Abs"};
  SizeRanges ranges(model, {});
  TensorRTProbe probe(model, trials, ranges);
  const ProbeReport report = probe.run(Judge::builder);
  ASSERT_EQ(report.findings.size(), 1U);
  const onnx::Model part = probe.smallest_part(report.findings.front());
  ASSERT_EQ(part.graph().node_count(), 1U);
  EXPECT_EQ(part.graph().nodes().front()->name, "b");
  EXPECT_EQ(part.graph().inputs().front()->name, "a");
}

}  // namespace
}  // namespace graft::inspect

// Tests the next steps that are proposed for a network, by the verdicts on its nodes.
#include "inspect/next_steps.hpp"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace graft::inspect {
namespace {

using Kind = NextStep::Kind;
using Steps = std::vector<NextStep>;

NodeSupport node(Support verdict, const std::string& advice = "") {
  return {.node = {.id = "n", .name = "n", .op = "Op", .domain = ""},
          .op = "Op",
          .support = verdict,
          .reason = "",
          .advice = advice};
}

TEST(NextSteps, what_runs_is_built) {
  EXPECT_EQ(next_steps({node(Support::native), node(Support::native)}, false), (Steps{{Kind::build, 2}}));
}

TEST(NextSteps, what_can_be_rewritten_is_converted_first) {
  const std::vector<NodeSupport> nodes{node(Support::native), node(Support::lowered), node(Support::plugin)};
  EXPECT_EQ(next_steps(nodes, false), (Steps{{Kind::convert, 2}}));
  EXPECT_EQ(next_steps({node(Support::plugin)}, true), (Steps{{Kind::build, 1}}));
}

TEST(NextSteps, what_build_makes_a_plugin_of_needs_no_conversion) {
  NodeSupport of_onnx = node(Support::plugin);
  of_onnx.op = "NonZero";
  EXPECT_EQ(next_steps({of_onnx}, false), (Steps{{Kind::build, 1}}));
  EXPECT_EQ(next_steps({of_onnx, node(Support::plugin)}, false), (Steps{{Kind::convert, 1}}));
}

TEST(NextSteps, what_runs_nowhere_is_cut_off) {
  const std::vector<NodeSupport> nodes{node(Support::unsupported), node(Support::lowered), node(Support::crashes)};
  EXPECT_EQ(next_steps(nodes, false), (Steps{{Kind::cut, 2}}));
}

TEST(NextSteps, what_is_computed_wrongly_is_guarded) {
  NodeSupport in_danger = node(Support::native);
  in_danger.cause = computed_wrongly;
  EXPECT_EQ(next_steps({in_danger, node(Support::native), node(Support::lowered)}, false), (Steps{{Kind::guard, 1}}));
  EXPECT_EQ(next_steps({in_danger, node(Support::unsupported)}, false), (Steps{{Kind::cut, 1}}));
}

TEST(NextSteps, a_cut_counts_the_nodes_that_are_computed_wrongly) {
  NodeSupport wrong = node(Support::unsupported);
  wrong.cause = computed_wrongly;
  EXPECT_EQ(next_steps({wrong, node(Support::unsupported)}, false), (Steps{{Kind::cut, 2, 1}}));
  // TensorRT's message says that it refuses the node, so it computes nothing.
  wrong.tensorrt = "UNSUPPORTED_NODE";
  EXPECT_EQ(next_steps({wrong}, false), (Steps{{Kind::cut, 1, 0}}));
  EXPECT_EQ(report::problem_text(2, 0), "TensorRT does not run");
  EXPECT_EQ(report::problem_text(2, 1), "TensorRT does not run or computes wrongly");
  EXPECT_EQ(report::problem_text(2, 2), "TensorRT computes wrongly");
}

TEST(NextSteps, what_the_rules_do_not_know_is_asked_first) {
  EXPECT_EQ(next_steps({node(Support::unknown)}, false), (Steps{{Kind::probe, 1}}));
  EXPECT_EQ(next_steps({node(Support::unknown), node(Support::refused)}, false),
            (Steps{{Kind::probe, 1}, {Kind::cut, 1}}));
}

TEST(NextSteps, a_fault_is_corrected_before_anything_else) {
  EXPECT_EQ(next_steps({node(Support::unsupported, advice_on_fault), node(Support::refused)}, false),
            (Steps{{Kind::correct, 1}}));
}

TEST(NextSteps, what_a_conversion_fuses_is_offered_before_the_build) {
  const std::vector<NodeSupport> nodes{node(Support::native), node(Support::native)};
  EXPECT_EQ(next_steps(nodes, false, true, 2), (Steps{{Kind::fuse, 2}, {Kind::build, 2}}));
  EXPECT_EQ(next_steps(nodes, true, true, 2), (Steps{{Kind::build, 2}}));
  EXPECT_EQ(next_steps({node(Support::refused)}, false, false, 2), (Steps{{Kind::cut, 1}}));
}

TEST(NextSteps, an_operator_that_no_library_has_is_written) {
  NodeSupport own = node(Support::refused);
  own.cause = report::library_missing;
  own.op = "acme::Blur";
  NodeSupport other = own;
  other.op = "acme::Sharpen";
  NodeSupport of_onnx = own;
  of_onnx.node = {.id = "u", .name = "u", .op = "Unique", .domain = ""};
  NodeSupport named_as_of_onnx = own;
  named_as_of_onnx.node = {.id = "r", .name = "r", .op = "Relu", .domain = "acme"};
  named_as_of_onnx.op = "acme::Relu";
  EXPECT_EQ(next_steps({node(Support::native), other, own, other, of_onnx, named_as_of_onnx}, false),
            (Steps{{Kind::write, 2, 0, 1}, {Kind::cut, 5}}));
}

TEST(NextSteps, of_many_operators_the_one_with_most_nodes_is_written) {
  std::vector<NodeSupport> nodes;
  for (int i = 0; i < 5; ++i) {
    for (int copy = 0; copy <= i; ++copy) {
      nodes.push_back(node(Support::refused));
      nodes.back().cause = report::library_missing;
      nodes.back().op = "acme::Blur" + std::to_string(i);
    }
  }
  EXPECT_EQ(next_steps(nodes, false), (Steps{{Kind::write, 5, 0, 10}, {Kind::cut, 15}}));
}

TEST(NextSteps, an_operator_is_written_from_a_node_that_can_be_defined) {
  std::vector<NodeSupport> nodes;
  for (const char* name : {"a", "b", "c", "d"}) {
    nodes.push_back(node(Support::refused));
    nodes.back().cause = report::library_missing;
    nodes.back().node = {.id = name, .name = name, .op = "Blur", .domain = "acme"};
    nodes.back().op = "acme::Blur";
  }
  nodes.back().op = "acme::Sharpen";
  const auto steps = [&](const std::string& defined) {
    return next_steps(nodes, false, false, 0, [&](const std::string& name) { return name == defined; });
  };
  EXPECT_EQ(steps("b"), (Steps{{Kind::write, 3, 0, 1}, {Kind::cut, 4}}));
  EXPECT_EQ(steps("d"), (Steps{{Kind::write, 1, 0, 3}, {Kind::cut, 4}}));
  EXPECT_EQ(steps("none"), (Steps{{Kind::cut, 4}}));
}

TEST(NextSteps, a_model_without_nodes_needs_none) { EXPECT_EQ(next_steps({}, false), Steps{}); }

}  // namespace
}  // namespace graft::inspect

// Tests the next steps that are proposed for a network, by the verdicts on its nodes.
#include "inspect/next_steps.hpp"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace graft::inspect {
namespace {

using Kind = NextStep::Kind;
using Steps = std::vector<NextStep>;

NodeVerdict node(Verdict verdict, const std::string& advice = "") {
  return {.node = {.id = "n", .name = "n", .op = "Op", .domain = ""},
          .op = "Op",
          .verdict = verdict,
          .reason = "",
          .advice = advice};
}

TEST(NextSteps, what_runs_is_built) {
  EXPECT_EQ(next_steps({node(Verdict::native), node(Verdict::native)}, false), (Steps{{Kind::build, 2}}));
}

TEST(NextSteps, what_can_be_rewritten_is_converted_first) {
  const std::vector<NodeVerdict> nodes{node(Verdict::native), node(Verdict::lowered), node(Verdict::plugin)};
  EXPECT_EQ(next_steps(nodes, false), (Steps{{Kind::convert, 2}}));
  EXPECT_EQ(next_steps({node(Verdict::plugin)}, true), (Steps{{Kind::build, 1}}));
}

TEST(NextSteps, what_build_makes_a_plugin_of_needs_no_conversion) {
  NodeVerdict of_onnx = node(Verdict::plugin);
  of_onnx.op = "NonZero";
  EXPECT_EQ(next_steps({of_onnx}, false), (Steps{{Kind::build, 1}}));
  EXPECT_EQ(next_steps({of_onnx, node(Verdict::plugin)}, false), (Steps{{Kind::convert, 1}}));
}

TEST(NextSteps, what_runs_nowhere_is_cut_off) {
  const std::vector<NodeVerdict> nodes{node(Verdict::unsupported), node(Verdict::lowered), node(Verdict::crashes)};
  EXPECT_EQ(next_steps(nodes, false), (Steps{{Kind::cut, 2}}));
}

TEST(NextSteps, what_is_computed_wrongly_is_guarded) {
  NodeVerdict in_danger = node(Verdict::native);
  in_danger.cause = computed_wrongly;
  EXPECT_EQ(next_steps({in_danger, node(Verdict::native), node(Verdict::lowered)}, false), (Steps{{Kind::guard, 1}}));
  EXPECT_EQ(next_steps({in_danger, node(Verdict::unsupported)}, false), (Steps{{Kind::cut, 1}}));
}

TEST(NextSteps, what_the_rules_do_not_know_is_asked_first) {
  EXPECT_EQ(next_steps({node(Verdict::unknown)}, false), (Steps{{Kind::probe, 1}}));
  EXPECT_EQ(next_steps({node(Verdict::unknown), node(Verdict::refused)}, false),
            (Steps{{Kind::probe, 1}, {Kind::cut, 1}}));
}

TEST(NextSteps, a_fault_is_corrected_before_anything_else) {
  EXPECT_EQ(next_steps({node(Verdict::unsupported, advice_on_fault), node(Verdict::refused)}, false),
            (Steps{{Kind::correct, 1}}));
}

TEST(NextSteps, a_model_without_nodes_needs_none) { EXPECT_EQ(next_steps({}, false), Steps{}); }

}  // namespace
}  // namespace graft::inspect

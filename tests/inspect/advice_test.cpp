// Tests how advice on nodes is corrected by what is known of the whole model.
#include "inspect/advice.hpp"

#include <gtest/gtest.h>

#include "graft/setting.hpp"
#include "inspect/tensorrt_support.hpp"

namespace graft::inspect {
namespace {

NodeSupport refused(std::string advice) {
  return {.node = {.id = "y", .name = "n", .op = "LpPool", .domain = ""},
          .op = "LpPool",
          .support = Support::refused,
          .reason = "no reason",
          .advice = std::move(advice)};
}

std::string withdrawn(std::string advice) {
  std::vector<NodeSupport> nodes{refused(std::move(advice))};
  withdraw_cut(nodes);
  return nodes.front().advice;
}

TEST(Advice, clauses_that_name_the_cut_are_removed) {
  const std::string cut(setting_name(Setting::cut));
  EXPECT_EQ(withdrawn("no operator replaces it; " + cut + " leaves the node to the host; or write one"),
            "no operator replaces it; write one");
  EXPECT_EQ(withdrawn(cut + ": the host runs the remaining nodes; or a plugin: another; or a third"),
            "a plugin: another; or a third");
  EXPECT_EQ(withdrawn("compute it outside of the body; or " + cut + " leaves the node to the host"),
            "compute it outside of the body");
  EXPECT_EQ(withdrawn(cut + " leaves the node to the host"),
            "run the network in another runtime, such as ONNX Runtime");
  EXPECT_EQ(withdrawn("one; or another"), "one; or another");
}

TEST(Advice, an_obstacle_replaces_the_general_advice_on_its_node) {
  const std::vector<report::NearMiss> notes{{.pass = "lower_to_native",
                                             .pattern = "LpPool with layers of TensorRT",
                                             .node = {.id = "y", .name = "n", .op = "LpPool", .domain = ""},
                                             .matched_nodes = 1,
                                             .pattern_nodes = 1,
                                             .reason = "p is 0"}};
  const std::string other = "graft convert computes it in f32; or quantize the float model";
  std::vector<NodeSupport> nodes{refused(advice_to_convert()), refused("other advice"), refused(advice_to_convert()),
                                 refused(other), refused(other)};
  nodes[2].node.id = nodes[4].node.id = "z";
  note_obstacles(nodes, notes);
  const std::string obstacle = "graft convert does not replace the node with layers that TensorRT has: p is 0";
  EXPECT_EQ(nodes[0].advice,
            obstacle + "; " + std::string(setting_name(Setting::cut)) + " leaves the node to the host");
  EXPECT_EQ(nodes[1].advice, "other advice");
  EXPECT_EQ(nodes[2].advice, advice_to_write_one()) << "no lowering was tried";
  EXPECT_EQ(nodes[3].advice, obstacle + "; or quantize the float model");
  EXPECT_EQ(nodes[4].advice, other) << "no lowering was tried";
}

}  // namespace
}  // namespace graft::inspect

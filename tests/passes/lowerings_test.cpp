// Tests the cost and the proof that a lowering reports; tests/import tests the results.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "graft/error.hpp"
#include "passes/lowering/cost.hpp"
#include "passes/lowering/lowering.hpp"
#include "passes/pipeline.hpp"
#include "runtime/default_engine.hpp"
#include "tests/passes/models.hpp"

namespace graft::passes::lowerings_test {
namespace {

using test::count_of;
using test::inferred_text_model;
using testing::HasSubstr;
using testing::StartsWith;

TEST(Cost, CountsFromShapesWithOneForOpenSizes) {
  const onnx::Model model = inferred_text_model(
      {{"x", onnx::ElementType::f32, {Dim::symbol("N"), 3, 4}}, {"w", onnx::ElementType::f32, {4, 5}}},
      "a = MatMul(x, w)\nb = Relu(a)\nc = Flatten(b)\ny = Transpose(c)", {"y"});
  const Cost cost = cost_of(model.graph());
  EXPECT_TRUE(cost.is_known);
  EXPECT_EQ(cost.layers, 4);
  EXPECT_EQ(cost.operations, 2 * 3 * 4 * 5 + 3 * 5);
  EXPECT_EQ(cost.written, 3 * 5 + 3 * 5 + 3 * 5);  // Flatten writes nothing
  EXPECT_EQ(to_string(cost), "4 layers, 135 operations, 45 elements written");
}

TEST(Cost, IsUnknownWhereASizeIs) {
  const onnx::Model model = inferred_text_model({{"x", onnx::ElementType::f32}}, "y = Relu(x)", {"y"});
  EXPECT_FALSE(cost_of(model.graph()).is_known);
  EXPECT_THAT(to_string(cost_of(model.graph())), HasSubstr("unknown"));
}

TEST(Lowerings, SayWhatTheyCostAndHowTheyWereProven) {
  onnx::Model model = inferred_text_model({{"x", onnx::ElementType::f32, {Dim::symbol("N"), 4, 8, 8}}},
                                          "y = MaxPool<kernel_shape=[3, 3], dilations=[2, 2]>(x)", {"y"});
  const RewriteReport report = convert(runtime::default_engine(), model);
  EXPECT_EQ(count_of(model, "MaxPool"), 0U);
  ASSERT_EQ(report.count("lower_to_native"), 1U);
  const Rewrite& rewrite = report.rewrites.front();
  EXPECT_EQ(rewrite.replacement, "Max of 9 strided slices");
  EXPECT_THAT(rewrite.reason, StartsWith("TensorRT refuses MaxPool with dilations"));
  EXPECT_THAT(rewrite.reason, HasSubstr("costs 10 layers"));
  EXPECT_THAT(rewrite.reason, HasSubstr("a plugin would write 64 elements"));
  EXPECT_THAT(rewrite.proof, HasSubstr("runs"));
}

/// The length of each signal is known only after the previous transform was lowered to layers with known shapes.
TEST(Lowerings, AChainOfTransformsIsLoweredInOneConversion) {
  std::string nodes;
  constexpr int length = 9;
  for (int i = 0; i < length; ++i) {
    nodes += fmt::format("d{} = DFT<axis=1, inverse={}>({})\n", i, i % 2, i == 0 ? "x" : fmt::format("d{}", i - 1));
  }
  onnx::Model model = inferred_text_model({{"x", onnx::ElementType::f32, {2, 6, 2}}},
                                          nodes + fmt::format("y = Relu(d{})", length - 1), {"y"});
  const RewriteReport report = convert(runtime::default_engine(), model);
  EXPECT_EQ(count_of(model, "DFT"), 0U);
  EXPECT_EQ(std::count_if(report.rewrites.begin(), report.rewrites.end(),
                          [](const Rewrite& rewrite) { return rewrite.nodes.front().op == "DFT"; }),
            length);
  EXPECT_TRUE(convert(runtime::default_engine(), model).rewrites.empty());
}

TEST(Lowerings, ALimitOfBoxesBeyond32BitsBecomesTheLargestOfThem) {
  const std::vector<test::TextInput> inputs = {{"boxes", onnx::ElementType::f32, {1, 20, 4}},
                                               {"scores", onnx::ElementType::f32, {1, 1, 20}}};
  for (const std::string arguments : {"", ", iou", ", _, score", ", iou, score"}) {
    onnx::Model model =
        inferred_text_model(inputs,
                            "limit = Constant<value_int=9223372036854775807>()\niou = Constant<value_float=0.5>()\n"
                            "score = Constant<value_float=0.25>()\n"
                            "y = NonMaxSuppression<center_point_box=1>(boxes, scores, limit" +
                                arguments + ")",
                            {"y"});
    const RewriteReport report = convert(runtime::default_engine(), model);
    EXPECT_EQ(report.count("lower_to_native"), 1U) << arguments;
    const onnx::Node& node = *model.graph().find("y")->producer;
    EXPECT_EQ(node.input(2)->constant()->ints(), std::vector<std::int64_t>{2147483647});
    EXPECT_EQ(node.int_or("center_point_box", 0), 1);
    EXPECT_EQ(node.input(3) != nullptr, arguments.starts_with(", iou"));
    EXPECT_EQ(node.input(4) != nullptr, arguments.ends_with("score"));
  }
}

TEST(Lowerings, AreInTheListOnceForEachForm) {
  for (const Lowering& lowering : lowerings()) {
    EXPECT_FALSE(lowering.form.empty()) << lowering.op_type;
    EXPECT_FALSE(lowering.refused.empty()) << lowering.op_type;
    EXPECT_TRUE(lowering.advice.empty() || lowering.advice.starts_with("graft convert ")) << lowering.op_type;
    const auto same = [&](const Lowering& other) {
      return other.op_type == lowering.op_type && other.domain == lowering.domain && other.refused == lowering.refused;
    };
    EXPECT_EQ(std::count_if(lowerings().begin(), lowerings().end(), same), 1) << lowering.op_type;
  }
}

TEST(Lowerings, TakeNoReductionThatOnnxDoesNotHaveForAnother) {
  for (const char* node : {"ScatterND<reduction=\"xor\">", "ScatterElements<reduction=\"xor\">"}) {
    for (const bool are_constant : {false, true}) {
      std::vector<test::TextInput> inputs{{"x", onnx::ElementType::f32, {8, 1}},
                                          {"updates", onnx::ElementType::f32, {3, 1}}};
      if (!are_constant) inputs.push_back({"places", onnx::ElementType::i64, {3, 1}});
      const std::string places =
          "flat = Constant<value_ints=[0, 5, 2]>()\nshape = Constant<value_ints=[3, 1]>()\n"
          "places = Reshape(flat, shape)\n";
      onnx::Model model = inferred_text_model(
          inputs, fmt::format("{}y = {}(x, places, updates)", are_constant ? places : "", node), {"y"});
      ConvertOptions without_proofs;
      without_proofs.prove = false;
      const RewriteReport report = convert(runtime::default_engine(), model, without_proofs);
      EXPECT_EQ(report.count("lower_to_native"), 0U) << node << (are_constant ? " constant" : " computed");
      ASSERT_FALSE(report.near_misses.empty());
      EXPECT_THAT(report.near_misses.front().reason, HasSubstr("its reduction is 'xor'"));
    }
  }
}

using onnx::ElementType::f32;
using onnx::ElementType::i32;

onnx::Model multi_head_attention(const std::string& attributes, std::int64_t keys = 5) {
  return inferred_text_model({{"q", f32, {2, 5, 8}}, {"k", f32, {2, keys, 8}}, {"v", f32, {2, keys, 8}}},
                             fmt::format("y = com.microsoft::MultiHeadAttention<num_heads=2{}>(q, k, v)", attributes),
                             {"y"});
}

TEST(Lowerings, KeepAMultiHeadAttentionThatTheReleaseBuilds) {
  const auto remaining = [](const std::string& attributes, bool has_it, std::int64_t keys = 5) {
    onnx::Model model = multi_head_attention(attributes, keys);
    ConvertOptions options;
    options.has_multi_head_attention = has_it;
    options.prove = false;
    convert(runtime::default_engine(), model, options);
    return count_of(model, "MultiHeadAttention");
  };
  EXPECT_EQ(remaining("", true), 1U);
  EXPECT_EQ(remaining("", false), 0U);
  EXPECT_EQ(remaining(", unidirectional=1", true), 1U);
  EXPECT_EQ(remaining(", unidirectional=1", false), 0U);
  EXPECT_EQ(remaining(", scale=0.5", true), 1U);
  EXPECT_EQ(remaining(", scale=0.0", true), 0U) << "0 stands for the default, and TensorRT multiplies by 0";
  EXPECT_EQ(remaining(", scale=-0.5", true), 0U) << "TensorRT takes the root of the scale";
  EXPECT_EQ(remaining(", mask_filter_value=-9.0", true), 0U);
  EXPECT_EQ(remaining(", unidirectional=1", true, 7), 1U) << "not lowered, because the lengths differ";
}

TEST(Lowerings, NameTheInputOfAnAttentionWhoseShapeDoesNotFit) {
  struct Case {
    std::vector<test::TextInput> inputs;
    std::string node;
    std::string message;
  };
  const std::vector<test::TextInput> three{{"q", f32, {2, 5, 8}}, {"k", f32, {2, 7, 8}}, {"v", f32, {2, 7, 8}}};
  const auto with = [&](const test::TextInput& input) {
    std::vector<test::TextInput> inputs = three;
    inputs.push_back(input);
    return inputs;
  };
  const std::string multi_head = "y = com.microsoft::MultiHeadAttention<num_heads=2>(q, k, v, {})";
  const std::string packed = "y = com.microsoft::Attention<num_heads=2>(q, w, {})";
  const test::TextInput weights{"w", f32, {8, 24}};
  const std::vector<Case> cases{
      {with({"m", i32, {2, 9}}), fmt::format(fmt::runtime(multi_head), "_, m"),
       "its input key_padding_mask 'm' has the shape [2, 9]; it must be [2, 7]"},
      {with({"m", i32, {2, 7, 7}}), fmt::format(fmt::runtime(multi_head), "_, m"), "it must be [2, 5, 7]"},
      {with({"b", f32, {23}}), fmt::format(fmt::runtime(multi_head), "b"),
       "its input bias 'b' has the shape [23]; it must be [24]"},
      {with({"b", f32, {3, 2, 5, 7}}), fmt::format(fmt::runtime(multi_head), "_, _, b"),
       "its input attention_bias 'b' has the shape [3, 2, 5, 7]; it must be [1 or 2, 1 or 2, 5, 7]"},
      {with({"p", f32, {2, 3, 4, 4}}), fmt::format(fmt::runtime(multi_head), "_, _, _, p, p"),
       "its input past_key 'p' has the shape [2, 3, 4, 4]; it must be [2, 2, 4, size of a head]"},
      {{{"q", f32, {2, 5, 8}}, {"k", f32, {2, 7, 8}}, {"v", f32, {2, 6, 8}}, {"b", f32, {24}}},
       fmt::format(fmt::runtime(multi_head), "b"),
       "its input value 'v' has the shape [2, 6, 8]; it must be [2, 7, width]"},
      {{{"q", f32, {2, 5, 8}}, weights, {"m", i32, {2, 4}}},
       fmt::format(fmt::runtime(packed), "_, m"),
       "its input mask_index 'm' has the shape [2, 4]; it must be [2, 5]"},
      {{{"q", f32, {2, 5, 9}}, weights, {"b", f32, {24}}},
       fmt::format(fmt::runtime(packed), "b"),
       "its input input 'q' has the shape [2, 5, 9]; it must be [2, 5, 8]"},
  };
  for (const Case& each : cases) {
    onnx::Model model = inferred_text_model(each.inputs, each.node, {"y"});
    try {
      convert(runtime::default_engine(), model);
      ADD_FAILURE() << each.node;
    } catch (const Error& error) {
      EXPECT_THAT(error.what(), testing::AllOf(HasSubstr("'y' ("), HasSubstr(each.message))) << each.node;
    }
  }
}

RewriteReport convert_text(const std::vector<test::TextInput>& inputs, const std::string& nodes,
                           std::int64_t unroll = report::default_unroll) {
  onnx::Model model = inferred_text_model(inputs, nodes, {"y"});
  ConvertOptions options;
  options.prove = false;
  options.unroll = unroll;
  return convert(runtime::default_engine(), model, options);
}

TEST(Sequences, OfManyPartsAreJoinedUpToTheLimit) {
  const std::string joined = "parts = SplitToSequence(x)\ny = ConcatFromSequence<axis=1>(parts)";
  EXPECT_EQ(convert_text({{"x", f32, {500, 3}}}, joined).count("lower_to_native"), 1U);
  const RewriteReport refused = convert_text({{"x", f32, {65536, 3}}}, joined);
  EXPECT_EQ(refused.count("lower_to_native"), 0U);
  ASSERT_EQ(refused.near_misses.size(), 1U);
  EXPECT_THAT(refused.near_misses[0].reason,
              HasSubstr("the 65536 tensors of its sequence need 65536 nodes, which are more than 1000 nodes"));
  EXPECT_EQ(convert_text({{"x", f32, {1200, 3}}}, joined, 2000).count("lower_to_native"), 1U);
}

TEST(Sequences, OfPartsThatDoNotAddUpAreRefused) {
  for (const char* reader : {"y = ConcatFromSequence<axis=0>(parts)", "y = ConcatFromSequence<axis=1>(parts)",
                             "first = Constant<value_int=0>()\ny = SequenceAt(parts, first)",
                             "n = SequenceLength(parts)\ny = Cast<to=float>(n)"}) {
    const std::string nodes =
        fmt::format("sizes = Constant<value_ints=[4, 4]>()\nparts = SplitToSequence<axis=0>(x, sizes)\n{}", reader);
    EXPECT_NO_THROW(convert_text({{"x", f32, {8, 9}}}, nodes)) << reader;
    try {
      convert_text({{"x", f32, {9, 9}}}, nodes);
      ADD_FAILURE() << reader;
    } catch (const Error& error) {
      EXPECT_THAT(error.what(), HasSubstr("the lengths of its parts add up to 8, and axis 0 of 'x' has the size 9"));
    }
  }
}

/// Each node of a chain was visited by each reader before, which took minutes.
TEST(Sequences, OfManyChangesAreFollowedOnce) {
  constexpr int count = 3000;
  std::string nodes = "s0 = SequenceEmpty()\nfirst = Constant<value_int=0>()\n";
  std::string sum = "x";
  for (int i = 0; i < count; ++i) {
    nodes += fmt::format("s{1} = SequenceInsert(s{0}, x)\na{0} = SequenceAt(s{1}, first)\n", i, i + 1);
  }
  for (int i = 0; i < count; i += 100) {
    nodes += fmt::format("t{} = Add({}, a{})\n", i, sum, i);
    sum = fmt::format("t{}", i);
  }
  const RewriteReport report = convert_text({{"x", f32, {2}}}, nodes + fmt::format("y = Relu({})", sum));
  EXPECT_EQ(report.count("lower_to_native"), static_cast<std::size_t>(count / 100));
  std::size_t inserted = 0;
  for (const Rewrite& rewrite : report.rewrites) {
    for (const NodeRef& node : rewrite.nodes) inserted += node.op == "SequenceInsert" ? 1 : 0;
  }
  EXPECT_LE(inserted, static_cast<std::size_t>(count)) << "each is named once";
}

TEST(Lowerings, SayWhyNot) {
  const std::string node = "y = DFT<axis=0>(x)";
  onnx::Model model = inferred_text_model({{"x", onnx::ElementType::f32, {Dim::symbol("N"), 8, 1}}}, node, {"y"});
  const RewriteReport report = convert(runtime::default_engine(), model);
  EXPECT_EQ(count_of(model, "DFT"), 1U);
  ASSERT_EQ(report.near_misses.size(), 1U);
  EXPECT_THAT(report.near_misses.front().reason,
              testing::AllOf(HasSubstr("the length of its signal is dynamic; "),
                             HasSubstr(" sets fixed sizes for the inputs of the network")));
}

/// A small file may require a table of any size.
TEST(Lowerings, MakeNoTableBeyondTheLimit) {
  const auto converted = [](std::int64_t height) {
    onnx::Model model = inferred_text_model({{"x", onnx::ElementType::f32, {1, 1, height, 3}},
                                             {"w", onnx::ElementType::f32, {1, 1, 1, 2}},
                                             {"o", onnx::ElementType::f32, {1, 4, height, 2}}},
                                            "y = DeformConv(x, w, o)", {"y"});
    ConvertOptions options;
    options.prove = false;
    const RewriteReport report = convert(runtime::default_engine(), model, options);
    return std::pair(count_of(model, "DeformConv"), report.near_misses);
  };
  EXPECT_EQ(converted(5).first, 0U);
  const auto [count, near_misses] = converted(std::int64_t{1} << 31);
  EXPECT_EQ(count, 1U);
  ASSERT_EQ(near_misses.size(), 1U);
  EXPECT_THAT(near_misses.front().reason,
              HasSubstr("a table of constants that its layers need would have more than 16777216 elements"));
}

}  // namespace
}  // namespace graft::passes::lowerings_test

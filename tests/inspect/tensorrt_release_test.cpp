// Tests the names of TensorRT's releases, and rules that are valid for some of them. The expected verdicts are from
// release notes, and from the parsers of TensorRT-RTX 1.4 to 1.7.
#include "inspect/tensorrt_release.hpp"

#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "graft/error.hpp"
#include "inspect/verdicts.hpp"
#include "tests/support/text_model.hpp"

namespace graft::inspect {
namespace {

using onnx::ElementType;

Release release(const std::string& name) { return release_of(name, "--for"); }

Support verdict_in(const onnx::Model& model, const std::string& name) {
  return judge_nodes(model, {}, release(name)).back().support;
}

std::string reason_in(const onnx::Model& model, const std::string& name) {
  return judge_nodes(model, {}, release(name)).back().reason;
}

TEST(Releases, are_known_by_flavor_and_two_numbers) {
  EXPECT_EQ(find_release("rtx-1.5"), (Release{Flavor::rtx, 1, 5}));
  EXPECT_EQ(find_release("tensorrt-10.13"), (Release{Flavor::full, 10, 13}));
  EXPECT_EQ(find_release("tensorrt-10.13.3"), (Release{Flavor::full, 10, 13}));
  EXPECT_EQ(find_release("rtx-1.7.1.116"), (Release{Flavor::rtx, 1, 7}));
  for (const char* name : {"", "1.5", "rtx", "rtx-", "rtx-1", "rtx-1.", "rtx-1.5.", "rtx-1.5x", "rtx-1.5.x", "rtx-1.50",
                           "rtx--1.5", "rtx-9.1", "tensorrt-8.6", "tensorrt-99999999999999999999.1", "trt-10.13"}) {
    EXPECT_EQ(find_release(name), std::nullopt) << name;
  }
  EXPECT_EQ(title_of(release("rtx-1.5")), "TensorRT-RTX 1.5");
  EXPECT_EQ(title_of(release("tensorrt-11.1")), "TensorRT 11.1");
  EXPECT_EQ(newest_measured_release(), (Release{Flavor::rtx, 1, 7}));
  for (const std::string& name : release_names()) EXPECT_EQ(name_of(release(name)), name);
}

TEST(Releases, another_one_is_refused_with_those_that_are_known) {
  try {
    (void)release_of("rtx-1.3", "--for");
    FAIL() << "nothing is known of it";
  } catch (const Error& error) {
    const std::string text = error.what();
    EXPECT_NE(
        text.find(
            "--for: Graft has no data on the release 'rtx-1.3'\nUse the nearest of the releases rtx-1.4, rtx-1.5"),
        std::string::npos)
        << text;
    EXPECT_NE(text.find("tensorrt-11.5"), std::string::npos) << text;
  }
}

TEST(Releases, an_operator_begins_with_the_release_that_added_it) {
  struct Case {
    std::string model;
    std::string before;
    std::string since;
  };
  const std::vector<Case> cases = {
      {"y = Swish(x)", "rtx-1.4", "rtx-1.5"},
      {"y = Swish(x)", "tensorrt-10.16", "tensorrt-11.0"},
      {"y = RMSNormalization(x, x)", "tensorrt-10.14", "tensorrt-10.15"},
      {"y = Attention(x, x, x)", "tensorrt-10.13", "tensorrt-10.14"},
      {"y = DFT(x)", "tensorrt-11.1", "tensorrt-11.2"},
  };
  for (const Case& each : cases) {
    const onnx::Model model = test::text_model({{"x", ElementType::f32, {2, 3, 4, 64}}}, each.model, {"y"});
    EXPECT_EQ(verdict_in(model, each.before), Support::unsupported) << each.model << each.before;
    EXPECT_EQ(verdict_in(model, each.since), Support::native) << each.model << each.since;
  }
}

TEST(Releases, a_form_is_refused_until_the_release_that_takes_it) {
  const onnx::Model model =
      test::text_model({{"x", ElementType::f32, {1, 2, 3, 4, 5}}, {"grid", ElementType::f32, {1, 3, 4, 5, 3}}},
                       "y = GridSample(x, grid)", {"y"});
  for (const char* name : {"rtx-1.4", "rtx-1.5", "tensorrt-10.0", "tensorrt-11.1"}) {
    EXPECT_EQ(verdict_in(model, name), Support::unsupported) << name;
    EXPECT_NE(reason_in(model, name).find("rank 5"), std::string::npos) << name;
  }
  for (const char* name : {"rtx-1.6", "rtx-1.7", "tensorrt-11.2", "tensorrt-11.5"}) {
    EXPECT_EQ(verdict_in(model, name), Support::native) << name;
  }
  const onnx::Model diagonal =
      test::text_model({{"x", ElementType::f32, {4, 4}}}, "y = Einsum<equation = \"ii->i\">(x)", {"y"});
  EXPECT_EQ(verdict_in(diagonal, "tensorrt-10.11"), Support::unsupported);
  EXPECT_EQ(verdict_in(diagonal, "tensorrt-10.12"), Support::native);
  const onnx::Model product =
      test::text_model({{"x", ElementType::f32, {4, 4}}}, "y = Einsum<equation = \"ij,jk->ik\">(x, x)", {"y"});
  EXPECT_EQ(verdict_in(product, "tensorrt-10.11"), Support::native);
}

TEST(Releases, an_old_operator_set_is_what_conversion_raises) {
  onnx::Model model = test::text_model({{"x", ElementType::f32, {2, 4}}}, "a = Add(x, x)\ny = Relu(a)", {"y"});
  for (const auto& [opset, verdict] : {std::pair(6, Support::lowered), std::pair(7, Support::native)}) {
    model.graph().opset_imports[""] = opset;
    for (const char* name : {"rtx-1.4", "rtx-1.7"}) {
      const std::vector<NodeSupport> nodes = judge_nodes(model, {}, release(name));
      EXPECT_EQ(nodes.front().support, verdict) << opset;
      EXPECT_EQ(nodes.back().support, Support::native) << opset;
    }
  }
}

TEST(Releases, what_only_a_plugin_runs_is_unsupported_where_no_plugin_gets_into_a_network) {
  const onnx::Model model = test::text_model({{"x", ElementType::f32, {2, 4}}}, "y = NonZero(x)", {"y"});
  EXPECT_EQ(verdict_in(model, "rtx-1.7"), Support::plugin);
  for (const char* name : {"rtx-1.4", "rtx-1.5", "rtx-1.6"}) {
    EXPECT_EQ(verdict_in(model, name), Support::unsupported) << name;
    EXPECT_NE(reason_in(model, name).find("cannot add a plugin to a network (measured in TensorRT-RTX"),
              std::string::npos)
        << reason_in(model, name);
  }
}

TEST(Releases, the_reason_has_its_source) {
  const onnx::Model model = test::text_model({{"x", ElementType::f32, {2, 4}}}, "y = Swish(x)", {"y"});
  EXPECT_EQ(reason_in(model, "rtx-1.4"), "TensorRT's parser does not support it (measured in TensorRT-RTX 1.4.0.76)");
  EXPECT_EQ(reason_in(model, "tensorrt-10.13"),
            "TensorRT's parser does not support it (according to the changes of TensorRT's parser)");
}

TEST(Releases, types_that_were_refused_are_and_types_that_are_not_listed_are_open) {
  const onnx::Model model = test::text_model({{"x", ElementType::u8, {2, 4}}}, "y = Add(x, x)", {"y"});
  EXPECT_EQ(verdict_in(model, "rtx-1.7"), Support::unsupported);
  EXPECT_NE(reason_in(model, "rtx-1.7").find("'x' is u8"), std::string::npos) << reason_in(model, "rtx-1.7");
  EXPECT_EQ(verdict_in(model, "tensorrt-11.0"), Support::unknown);
  const onnx::Model integers = test::text_model({{"x", ElementType::i64, {2, 4}}}, "y = Add(x, x)", {"y"});
  EXPECT_EQ(verdict_in(integers, "rtx-1.7"), Support::native);
  EXPECT_EQ(verdict_in(integers, "tensorrt-11.0"), Support::native);
  // TensorRT-RTX 1.4 does not build the operator in i8 alone; between quantized nodes it was not measured. 1.5 builds
  // it.
  const onnx::Model quantized = test::inferred_text_model(
      {{"x", ElementType::f32, {2, 4}}, {"scale", ElementType::f32, {}}, {"zero", ElementType::i8, {}}},
      "q = QuantizeLinear(x, scale, zero)\nc = Concat<axis = 0>(q, q)", {"c"});
  EXPECT_EQ(verdict_in(quantized, "rtx-1.4"), Support::unknown);
  EXPECT_EQ(verdict_in(quantized, "rtx-1.7"), Support::native);
}

TEST(Releases, what_is_in_no_table_is_unknown) {
  const onnx::Model model =
      test::text_model({{"x", ElementType::f32, {2, 3, 4, 8}}}, "y = FlexAttention(x, x, x)", {"y"});
  EXPECT_EQ(operator_fact(release("tensorrt-11.0"), "CumProd").runs, Answer::unknown);
  EXPECT_EQ(form_fact(release("tensorrt-11.0"), "lp_pool_p").runs, Answer::unknown);
  EXPECT_EQ(form_fact(release("rtx-1.7"), "no such form").runs, Answer::unknown);
  const onnx::Model pooled =
      test::text_model({{"x", ElementType::f32, {1, 2, 8, 8}}}, "y = LpPool<kernel_shape = [2, 2], p = 3>(x)", {"y"});
  EXPECT_EQ(verdict_in(pooled, "tensorrt-11.0"), Support::unknown);
  EXPECT_EQ(verdict_in(pooled, "rtx-1.7"), Support::unsupported);
}

TEST(Releases, some_build_the_attention_of_onnxruntime) {
  EXPECT_TRUE(has_multi_head_attention(release("rtx-1.7")));
  EXPECT_TRUE(has_multi_head_attention(release("rtx-1.6")));
  for (const char* name : {"rtx-1.4", "rtx-1.5", "tensorrt-10.13", "tensorrt-11.1"}) {
    EXPECT_FALSE(has_multi_head_attention(release(name))) << name;
  }
}

TEST(Releases, what_the_parser_takes_and_computes_wrongly_is_unsupported) {
  const auto attention = [](const std::string& attributes, std::int64_t keys) {
    return test::text_model({{"q", ElementType::f32, {2, 5, 8}},
                             {"k", ElementType::f32, {2, keys, 8}},
                             {"v", ElementType::f32, {2, keys, 8}}},
                            "y = com.microsoft::MultiHeadAttention<num_heads=2" + attributes + ">(q, k, v)", {"y"});
  };
  for (const auto& [attributes, keys] :
       {std::pair(", unidirectional=1", 7), std::pair(", scale=0.0", 5), std::pair(", scale=-1.0", 5)}) {
    const NodeSupport node = judge_nodes(attention(attributes, keys), {}, release("rtx-1.7")).front();
    EXPECT_EQ(node.support, Support::unsupported) << attributes;
    EXPECT_EQ(node.cause, computed_wrongly) << attributes;
  }
  for (const auto& [attributes, keys] :
       {std::pair(", unidirectional=1", 5), std::pair(", unidirectional=0", 7), std::pair(", scale=0.5", 5)}) {
    EXPECT_EQ(verdict_in(attention(attributes, keys), "rtx-1.7"), Support::native) << attributes;
  }
}

TEST(Releases, what_is_computed_wrongly_is_said_of_a_node_that_runs) {
  const auto sampled = [](const std::string& attributes) {
    return test::text_model({{"x", ElementType::f32, {1, 2, 4, 5}}, {"grid", ElementType::f32, {1, 4, 5, 2}}},
                            "y = GridSample" + attributes + "(x, grid)", {"y"});
  };
  const onnx::Model of_16 = sampled("<mode = \"bilinear\">");
  const onnx::Model of_20 = sampled("<mode = \"linear\">");
  const onnx::Model nearest = sampled("<mode = \"nearest\">");
  for (const char* name : {"tensorrt-10.14", "tensorrt-11.1"}) {
    EXPECT_EQ(verdict_in(of_16, name), Support::native) << name;
    EXPECT_NE(reason_in(of_16, name).find("issue 4813"), std::string::npos) << reason_in(of_16, name);
    const NodeSupport in_danger = judge_nodes(of_16, {}, release(name)).front();
    EXPECT_EQ(in_danger.cause, computed_wrongly) << name;
    EXPECT_NE(in_danger.advice.find(std::string("is for ") + name), std::string::npos) << in_danger.advice;
    // A rewrite of the node for another reason does not hide this verdict.
    const Forecast forecast{.becomes = {{in_danger.node, "graft convert makes another"}}, .stays = {}};
    EXPECT_EQ(judge_nodes(of_16, forecast, release(name)).front().reason, in_danger.reason);
  }
  for (const char* name : {"tensorrt-10.13", "rtx-1.5", "rtx-1.7"}) EXPECT_EQ(reason_in(of_16, name), "") << name;
  // Measured: the layer that the parser creates interpolates from release 1.6 on.
  for (const char* name : {"rtx-1.4", "rtx-1.5", "tensorrt-10.13", "tensorrt-11.1"}) {
    EXPECT_NE(reason_in(of_20, name).find("as nearest"), std::string::npos) << reason_in(of_20, name);
  }
  for (const char* name : {"rtx-1.6", "rtx-1.7"}) EXPECT_EQ(reason_in(of_20, name), "") << name;
  for (const std::string& name : release_names()) EXPECT_EQ(reason_in(nearest, name), "") << name;
}

TEST(Releases, words_are_found_whole) {
  EXPECT_TRUE(has_word("f32 f16 bf16", "f16"));
  EXPECT_TRUE(has_word("f32 f16 bf16", "bf16"));
  EXPECT_FALSE(has_word("f32 bf16", "f16"));
  EXPECT_FALSE(has_word("f32 f16", "f1"));
  EXPECT_FALSE(has_word("", "f16"));
}

}  // namespace
}  // namespace graft::inspect

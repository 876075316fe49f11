// Tests guards: rewrites of nodes that a release of TensorRT is known to compute wrongly. They run on request only.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "graft/error.hpp"
#include "passes/pipeline.hpp"
#include "runtime/default_engine.hpp"
#include "tests/passes/models.hpp"

namespace graft::passes::guards_test {
namespace {

using test::count_of;
using test::inferred_text_model;
using test::TextInput;
using testing::HasSubstr;

ConvertOptions guarded() {
  ConvertOptions options;
  options.guards = {"guard_grid_sample"};
  return options;
}

onnx::Model sampling(const std::string& attributes, const Shape& image = {Dim::symbol("N"), 3, 4, 7},
                     const Shape& grid = {Dim::symbol("N"), 5, 2, 2}) {
  return inferred_text_model({{"x", onnx::ElementType::f32, image}, {"grid", onnx::ElementType::f32, grid}},
                             "y = GridSample" + attributes + "(x, grid)", {"y"});
}

/// Returns deformable attention over levels of two sizes, as PyTorch's exporter writes it for Deformable DETR, RT-DETR
/// and D-FINE: 2 heads of 4 channels, 5 queries, 3 points.
onnx::Model deformable_attention() {
  std::string text = R"(
values_0 = Slice(value, begin_0, end_0, axis_1)
values_1 = Slice(value, end_0, end_1, axis_1)
doubled = Mul(locations, two)
grids = Sub(doubled, one)
)";
  for (const std::string level : {"0", "1"}) {
    text += "turned_" + level + " = Transpose<perm=[0, 2, 1]>(values_" + level + ")\n";
    text += "image_" + level + " = Reshape(turned_" + level + ", image_shape_" + level + ")\n";
    text += "of_level_" + level + " = Gather<axis=3>(grids, level_" + level + ")\n";
    text += "by_head_" + level + " = Transpose<perm=[0, 2, 1, 3, 4]>(of_level_" + level + ")\n";
    text += "grid_" + level + " = Reshape(by_head_" + level + ", grid_shape)\n";
    text += "sampled_" + level + " = GridSample<mode=\"bilinear\", padding_mode=\"zeros\", align_corners=0>(image_" +
            level + ", grid_" + level + ")\n";
    text += "stacked_" + level + " = Unsqueeze(sampled_" + level + ", axis_3)\n";
  }
  text += R"(
stacked = Concat<axis=-2>(stacked_0, stacked_1)
samples = Reshape(stacked, samples_shape)
weighted = Mul(samples, weights)
sum = ReduceSum<keepdims=0>(weighted, last_axis)
heads = Reshape(sum, heads_shape)
y = Transpose<perm=[0, 2, 1]>(heads)
)";
  const auto ints = [](const std::string& name, const std::vector<std::int64_t>& values) {
    return TextInput(name, onnx::TensorData::from_ints(values));
  };
  const auto number = [](const std::string& name, double value) {
    return TextInput(name, onnx::TensorData::from_numbers(onnx::ElementType::f32, {}, {value}));
  };
  onnx::TensorData first = onnx::TensorData::from_ints({0});
  onnx::TensorData second = onnx::TensorData::from_ints({1});
  first.dims = {};
  second.dims = {};
  return inferred_text_model({{"value", onnx::ElementType::f32, {1, 30, 8}},
                              {"locations", onnx::ElementType::f32, {1, 5, 2, 2, 3, 2}},
                              {"weights", onnx::ElementType::f32, {2, 1, 5, 6}},
                              number("two", 2),
                              number("one", 1),
                              ints("begin_0", {0}),
                              ints("end_0", {24}),
                              ints("end_1", {30}),
                              ints("axis_1", {1}),
                              ints("axis_3", {3}),
                              ints("last_axis", {-1}),
                              ints("image_shape_0", {2, 4, 4, 6}),
                              ints("image_shape_1", {2, 4, 2, 3}),
                              TextInput("level_0", first),
                              TextInput("level_1", second),
                              ints("grid_shape", {2, 5, 3, 2}),
                              ints("samples_shape", {2, 4, 5, 6}),
                              ints("heads_shape", {1, 8, 5})},
                             text, {"y"});
}

TEST(Guards, SampleByGatherWhateverTheEdgesAre) {
  for (const std::string padding : {"zeros", "border"}) {
    for (const std::string corners : {"0", "1"}) {
      onnx::Model model =
          sampling("<mode=\"bilinear\", padding_mode=\"" + padding + "\", align_corners=" + corners + ">");
      const RewriteReport report = convert(runtime::default_engine(), model, guarded());
      EXPECT_EQ(count_of(model, "GridSample"), 0U) << padding << corners;
      EXPECT_EQ(count_of(model, "GatherND"), 4U) << padding << corners;
      ASSERT_EQ(report.count("guard_grid_sample"), 1U) << padding << corners;
      EXPECT_TRUE(report.rejected.empty());
      EXPECT_THAT(report.rewrites.front().proof, HasSubstr("runs"));
      EXPECT_THAT(report.rewrites.front().reason, HasSubstr("reported"));
    }
  }
}

TEST(Guards, StandRoundDeformableAttention) {
  onnx::Model model = deformable_attention();
  const onnx::Model original = model.clone();
  const RewriteReport report = convert(runtime::default_engine(), model, guarded());
  EXPECT_EQ(count_of(model, "GridSample"), 0U);
  EXPECT_EQ(report.count("guard_grid_sample"), 2U);
  const auto compared = verify::verify_models(runtime::default_engine(), original, model, {});
  EXPECT_EQ(first_difference(compared), "");
}

TEST(Guards, DoNotRunUnlessAskedFor) {
  onnx::Model model = deformable_attention();
  const RewriteReport report = convert(runtime::default_engine(), model);
  EXPECT_EQ(count_of(model, "GridSample"), 2U);
  EXPECT_EQ(report.count("guard_grid_sample"), 0U);
  EXPECT_TRUE(std::none_of(report.near_misses.begin(), report.near_misses.end(),
                           [](const NearMiss& note) { return note.pass == "guard_grid_sample"; }));
}

TEST(Guards, RunWhereTheyAreNamedAmongThePasses) {
  onnx::Model model = deformable_attention();
  ConvertOptions options;
  options.only = {"guard_grid_sample"};
  EXPECT_EQ(convert(runtime::default_engine(), model, options).count("guard_grid_sample"), 2U);
  EXPECT_EQ(count_of(model, "GridSample"), 0U);
}

TEST(Guards, LeaveWhatTheyAreNotFor) {
  const Dim open = Dim::symbol("H");
  struct Case {
    onnx::Model model;
    std::string why;
  };
  std::vector<Case> cases;
  cases.push_back({sampling("<mode=\"nearest\">"), "its mode is nearest"});
  cases.push_back({sampling("<mode=\"bicubic\">"), "its mode is bicubic"});
  cases.push_back({sampling("<mode=\"bilinear\", padding_mode=\"reflection\">"), "its padding_mode is reflection"});
  cases.push_back(
      {sampling("<mode=\"bilinear\">", {1, 3, open, 7}, {1, 5, 2, 2}), "a size other than the batch is dynamic"});
  cases.push_back(
      {sampling("<mode=\"bilinear\">", {1, 3, 4, 7}, {1, open, 2, 2}), "a size other than the batch is dynamic"});
  for (Case& each : cases) {
    const RewriteReport report = convert(runtime::default_engine(), each.model, guarded());
    EXPECT_EQ(count_of(each.model, "GridSample"), 1U) << each.why;
    EXPECT_EQ(report.count("guard_grid_sample"), 0U) << each.why;
    ASSERT_EQ(report.near_misses.size(), 1U) << each.why;
    EXPECT_THAT(report.near_misses.front().reason, HasSubstr(each.why));
  }
}

TEST(DefaultModes, GoWithoutTheNameThatParsersDoNotKnow) {
  const auto mode_after = [](const std::string& mode, std::int64_t opset) {
    onnx::Model model = sampling("<mode=\"" + mode + "\">");
    model.graph().opset_imports[""] = opset;
    const RewriteReport report = convert(runtime::default_engine(), model);
    EXPECT_EQ(report.count("drop_default_modes"), mode == "linear" ? 1U : 0U) << mode;
    return model.graph().nodes().front()->string_or("mode", "none");
  };
  EXPECT_EQ(mode_after("linear", 20), "none");
  EXPECT_EQ(mode_after("linear", 22), "none");
  EXPECT_EQ(mode_after("cubic", 20), "cubic");
  EXPECT_EQ(mode_after("nearest", 20), "nearest");
  EXPECT_EQ(mode_after("bilinear", 17), "bilinear");
}

TEST(Guards, OfAnotherNameAreNoPasses) {
  onnx::Model model = sampling("<mode=\"bilinear\">");
  ConvertOptions options;
  options.guards = {"guard_everything"};
  EXPECT_THROW((void)convert(runtime::default_engine(), model, options), Error);
}

}  // namespace
}  // namespace graft::passes::guards_test

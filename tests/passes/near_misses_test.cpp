// Networks that look like an operator and are not stay as they are, and --explain can say why.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <map>
#include <nlohmann/json.hpp>

#include "graph/node_ref.hpp"
#include "graph/onnx_io.hpp"
#include "passes/pipeline.hpp"
#include "runtime/default_engine.hpp"
#include "tests/passes/models.hpp"
#include "tests/support/folders.hpp"

namespace graft {
namespace {

using runtime::default_engine;

const std::filesystem::path folder = golden_folder() / "near_misses";

const nlohmann::json& manifest() {
  static const nlohmann::json parsed = [] {
    std::ifstream file(folder / "manifest.json");
    return nlohmann::json::parse(file);
  }();
  return parsed;
}

/// Words that the reason has to contain. Files that are not here match too little of any pattern to be worth a word.
const std::map<std::string, std::string>& expected_reasons() {
  static const std::map<std::string, std::string> all = {
      {"l2_wrong_axis_unsqueezed.onnx", "put back along another axis"},
      {"l2_wrong_axis_keepdims_0.onnx", "`keepdims` is 0"},
      {"l2_no_epsilon_div.onnx", "no epsilon"},
      {"l2_no_epsilon_reduce_l2.onnx", "no epsilon"},
      {"l2_no_epsilon_rsqrt.onnx", "no epsilon"},
      {"l2_squares_used_elsewhere.onnx", "is used by node 'Sigmoid"},
      {"l2_sum_is_output.onnx", "is an output of the graph"},
      {"l2_norm_is_output.onnx", "is an output of the graph"},
      {"l2_clamp_used_elsewhere.onnx", "is used by node 'Log"},
      {"l2_power_3.onnx", "is 3, the pattern wants 2"},
      {"l2_power_3_of_abs.onnx", "is 3, the pattern wants 2"},
      {"l2_abs_of_another.onnx", "the pattern wants x"},
      {"l2_power_at_run_time.onnx", "is no constant, the pattern wants 2"},
      {"l2_power_per_channel.onnx", "{2, 2, 2, 3}, the pattern wants 2"},
      {"l2_l1_norm.onnx", "(ReduceL1)"},
      {"l2_sum_of_abs.onnx", "(Abs): the pattern wants Mul"},
      {"l2_sqrt_missing.onnx", "(ReduceSum)"},
      {"l2_sqrt_before_sum.onnx", "(ReduceSum)"},
      {"l2_clamp_on_x.onnx", "(ReduceSum): the pattern wants Max"},
      {"l2_clamp_on_squares.onnx", "(ReduceSum): the pattern wants Max"},
      {"l2_epsilon_per_channel.onnx", "epsilon holds 4 values"},
      {"l2_epsilon_of_rank_5.onnx", "raises the rank of the result from 4 to 5"},
      {"l2_epsilon_negative_max.onnx", "allowed is at least 0"},
      {"l2_epsilon_negative_add.onnx", "allowed is at least 0"},
      {"l2_epsilon_subtracted.onnx", "(Sub)"},
      {"l2_epsilon_added_to_norm.onnx", "epsilon is added to the norm"},
      {"l2_epsilon_at_run_time.onnx", "no constant, the pattern wants one for @epsilon"},
      {"l2_epsilon_computed.onnx", "no constant, the pattern wants one for @epsilon"},
      {"l2_double.onnx", "'x' is f64"},
      {"l2_int32.onnx", "'x' is i32"},
      {"l2_product_of_two.onnx", "is 'z', the pattern wants x"},
      {"l2_divides_another.onnx", "the pattern wants x, which is 'z'"},
      {"l2_norm_of_activation.onnx", "the pattern wants x, which is 'x'"},
      {"l2_division_upside_down.onnx", "the norm divided by x"},
      {"l2_reduce_mean.onnx", "(ReduceMean)"},
      {"l2_reduce_max.onnx", "(ReduceMax)"},
      {"l2_summed_twice.onnx", "(ReduceSum): the pattern wants Mul"},
      {"l2_reciprocal_twice.onnx", "(Reciprocal)"},
      {"l2_min_not_max.onnx", "(Min)"},
      {"l2_max_of_three.onnx", "it has an input 2"},
      {"l2_clip_above_only.onnx", "input 1 is absent"},
      {"l2_clip_both.onnx", "limits from above as well"},
      {"l2_cap_per_channel.onnx", "the cap on the reciprocal holds 4 values"},
      {"l2_axes_at_run_time.onnx", "no constant, the pattern wants one for @axes"},
      {"l2_no_axes_no_sum.onnx", "no axes to sum over"},
      {"l2_expanded_further.onnx", "need not be that of x"},
      {"l2_expanded_as_another.onnx", "need not be that of x"},
      {"l2_used_in_if.onnx", "'s' inside the match is used by"},
      {"leaky_alpha_above_one.onnx", "alpha is 2"},
      {"leaky_min_not_max.onnx", "leaky ReLU for alpha >= 1"},
      {"leaky_where_another.onnx", "is 'z', the pattern wants x"},
      {"leaky_where_reversed.onnx", "the pattern wants x, which is 'x'"},
      {"leaky_where_threshold.onnx", "is 1, the pattern wants 0"},
      {"leaky_where_condition_on_another.onnx", "the pattern wants x, which is 'z'"},
      {"leaky_alpha_per_channel.onnx", "alpha holds 4 values"},
      {"leaky_alpha_of_rank_5.onnx", "raises the rank of the result from 4 to 5"},
      {"leaky_alpha_at_run_time.onnx", "no constant, the pattern wants one for @alpha"},
      {"leaky_product_is_output.onnx", "is an output of the graph"},
      {"leaky_prelu_per_channel.onnx", "alpha holds 4 values"},
      {"leaky_relu_sign.onnx", "positive on both sides"},
      {"leaky_relu_of_double.onnx", "is -2, the pattern wants -1"},
      {"leaky_clips_overlap.onnx", "is 1, the pattern wants 0"},
      {"leaky_double.onnx", "'x' is f64"},
      {"padding_reflect_and_edge.onnx", "which is no mode of padding"},
      {"padding_not_flipped.onnx", "becomes [1, 2, 0, 1, 2, 3, 4, 2, 3]"},
      {"padding_one_off.onnx", "becomes [3, 2, 0, 1, 2, 3, 4, 3, 2]"},
      {"padding_border_is_output.onnx", "is an output of the graph"},
      {"padding_border_used_elsewhere.onnx", "is used by node 'Sigmoid"},
      {"padding_split_not_flipped.onnx", "becomes [1, 2, 0, 1, 2, 3, 4]"},
      {"padding_split_used_elsewhere.onnx", "is used by node 'Sigmoid"},
      {"padding_permuted.onnx", "which is no mode of padding"},
      {"padding_zeros_and_ones.onnx", "both 0 and 1 are filled in"},
      {"upsampling_channels.onnx", "repeated [1, 2, 1, 1] times"},
      {"upsampling_tiled.onnx", "upsampling repeats each element in its place"},
      {"upsampling_uneven.onnx", "becomes [0, 0, 1, 1, 2, 2, 3, 3, 4]"},
      {"upsampling_repeat_used_elsewhere.onnx", "is used by node 'Sigmoid"},
      {"upsampling_weights_rounded.onnx", "not those of linear interpolation"},
      {"upsampling_weights_doubled.onnx", "not those of linear interpolation"},
      {"upsampling_wrong_stride.onnx", "with stride [3, 3] is no interpolation"},
      {"upsampling_channels_mixed.onnx", "not those of linear interpolation"},
      {"upsampling_channels_multiplied.onnx", "4 channels become 8"},
      {"upsampling_with_bias.onnx", "it has a bias"},
      {"upsampling_dilated.onnx", "it is dilated"},
      {"pyramid_of_two.onnx", "'x' and 'z' are pooled"},
      {"pyramid_max_and_average.onnx", "one level takes the maximum"},
      {"pyramid_wrong_stride.onnx", "no rule makes 2 x 2 bins of 8 x 8"},
      {"pyramid_wrong_kernel.onnx", "no rule makes 2 x 2 bins of 8 x 8"},
      {"pyramid_not_square.onnx", "2 x 1 bins"},
      {"pyramid_by_cells.onnx", "is no pool of an image"},
      {"pyramid_not_flattened.onnx", "as one vector for each item"},
      {"pyramid_along_the_batch.onnx", "concatenated along axis 0"},
      {"pyramid_two_rules.onnx", "different rules of binning"},
      {"pyramid_pool_is_output.onnx", "is an output of the graph"},
      {"pyramid_average_without_padding.onnx", "no rule makes 4 x 4 bins of 13 x 13"},
      {"instance_unbiased.onnx", "not the one that divides by the count"},
      {"instance_sum_by_one_less.onnx", "not divided by the count of what is summed"},
      {"instance_sum_by_count_of_rows.onnx", "not divided by the count of what is summed"},
      {"instance_sum_by_count_of_another.onnx", "not divided by the count of what is summed"},
      {"instance_sum_by_inverse_count.onnx", "not divided by the count of what is summed"},
      {"instance_epsilon_outside.onnx", "epsilon is added to the deviation"},
      {"instance_no_epsilon.onnx", "there is no epsilon"},
      {"instance_epsilon_per_channel.onnx", "epsilon differs between channels"},
      {"instance_epsilon_negative.onnx", "epsilon is -0.001"},
      {"instance_epsilon_at_run_time.onnx", "does not follow from 'x' and constants"},
      {"instance_rows.onnx", "over the axes [3], not"},
      {"instance_variance_of_rows.onnx", "over the axes [3] of"},
      {"instance_layer.onnx", "over the axes [1, 2, 3], not"},
      {"instance_batch.onnx", "over the axes [0, 2, 3], not"},
      {"instance_not_centered.onnx", "x is divided by the deviation, but 0 is added"},
      {"instance_mean_added.onnx", "4 mean^2"},
      {"instance_mean_of_squares.onnx", "under the root is mean^2 + variance"},
      {"instance_mean_of_another.onnx", "does not follow from 'x' and constants"},
      {"instance_deviation_of_another.onnx", "does not follow from 'z' and constants"},
      {"instance_variance_limited.onnx", "the variance is limited"},
      {"instance_root_missing.onnx", "it divides by variance + 1e-05"},
      {"instance_variance_is_output.onnx", "is an output of the graph"},
      {"instance_mean_is_output.onnx", "is an output of the graph"},
      {"instance_centered_used_elsewhere.onnx", "is used by node 'Sigmoid"},
      {"instance_double.onnx", "'x' is f64"},
      {"instance_before_the_activation.onnx", "is an output of the graph"}};
  return all;
}

TEST(NearMisses, DoNotFuse) {
  std::size_t files = 0;
  for (const auto& entry : manifest().at("near_misses")) {
    const auto name = entry.at("file").get<std::string>();
    SCOPED_TRACE(name + ": " + entry.at("reason").get<std::string>());
    ++files;
    Model model = read_onnx(folder / name);
    const std::size_t nodes = model.graph().node_count();
    const ConvertReport report = convert(default_engine(), model);
    for (const Rewrite& rewrite : report.rewrites) EXPECT_FALSE(rewrite.pass.starts_with("fuse_")) << rewrite.pass;
    EXPECT_TRUE(operators_in(model).empty());
    EXPECT_GE(model.graph().node_count() + 2, nodes);  // constants may have been folded, no more
    EXPECT_TRUE(report.undone.empty()) << "the proof had to stop what the pattern should have: "
                                       << report.undone.front().proof;
  }
  EXPECT_GE(files, 130U);
}

// What never fuses anything would pass the tests above.
TEST(NearMisses, EachOperatorHasControlsThatAreOneConditionAway) {
  std::map<std::string, std::size_t> misses;
  std::map<std::string, std::size_t> controls;
  for (const auto& entry : manifest().at("near_misses")) ++misses[entry.at("operator").get<std::string>()];
  for (const auto& entry : manifest().at("controls")) ++controls[entry.at("operator").get<std::string>()];
  EXPECT_GE(misses.size(), 6U);
  for (const auto& [name, count] : misses) {
    EXPECT_GE(count, 10U) << name;
    EXPECT_GE(controls[name], 1U) << name;
  }
}

TEST(NearMisses, SayWhyNot) {
  std::size_t explained = 0;
  for (const auto& entry : manifest().at("near_misses")) {
    const auto name = entry.at("file").get<std::string>();
    Model model = read_onnx(folder / name);
    const ConvertReport report = convert(default_engine(), model);
    std::string found;
    for (const NearMissNote& note : report.near_misses)
      found += note.pattern + " | " + describe(note.node) + " | " + note.reason + "\n";
    if (std::getenv("GRAFT_SHOW_NEAR_MISSES") != nullptr) std::cout << name << "\n  " << found;
    const auto expected = expected_reasons().find(name);
    if (expected == expected_reasons().end()) continue;
    ++explained;
    EXPECT_THAT(found, testing::HasSubstr(expected->second)) << name;
  }
  EXPECT_EQ(explained, expected_reasons().size());
}

TEST(NearMisses, ControlsWrittenTheSameWayDoFuse) {
  std::size_t files = 0;
  for (const auto& entry : manifest().at("controls")) {
    const auto name = entry.at("file").get<std::string>();
    SCOPED_TRACE(name);
    ++files;
    const Model original = read_onnx(folder / name);
    Model model = original.clone();
    const ConvertReport report = convert(default_engine(), model);
    const bool was_native = count_of(original, "LeakyRelu") == 1;
    std::size_t fusions = 0;
    for (const Rewrite& rewrite : report.rewrites) fusions += rewrite.pass.starts_with("fuse_") ? 1 : 0;
    EXPECT_EQ(fusions, was_native ? 0U : 1U);
    // TensorRT has these two itself.
    const bool is_native = entry.at("operator") == "LeakyReLU" || entry.at("operator") == "Padding";
    if (is_native) {
      EXPECT_EQ(count_of(model, "LeakyRelu") + count_of(model, "Pad"), 1U);
    }
    EXPECT_EQ(operators_in(model).size(), is_native ? 0U : 1U);
    const VerifyReport verified = verify_models(default_engine(), original, model);
    EXPECT_TRUE(verified.equal()) << first_difference(verified);
  }
  EXPECT_GE(files, 10U);
}

}  // namespace
}  // namespace graft

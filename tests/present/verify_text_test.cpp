// Tests the warning where rounding alone changes the reference widely.
#include "present/text/verify_text.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <string>
#include <vector>

#include "core/comparison_text.hpp"
#include "verify/compare/compare.hpp"
#include "verify/judge/noise_floor.hpp"

namespace graft::present {
namespace {

using testing::HasSubstr;
using testing::Not;

onnx::TensorData tensor(const std::vector<double>& numbers) {
  return onnx::TensorData::from_numbers(onnx::ElementType::f32, {static_cast<std::int64_t>(numbers.size())}, numbers);
}

/// Returns the warning for a tensor that noise changes by 0.1 to 0.4, with `last` as the candidate's last element.
std::string warning_for(double last, const std::string& why_unconfirmed, const std::string& ran_in = "OpenVINO 1") {
  const onnx::TensorData reference = tensor({1, 2, 3, 4});
  const auto tolerance = verify::network_tolerance(onnx::ElementType::f32);
  verify::NoiseFloor floor(tolerance);
  floor.add(reference, reference, tensor({1.1, 2.1, 3.1, 4.1}));
  ComparedTensor compared;
  compared.reference = "y";
  compared.difference = verify::compare(reference, tensor({1, 2, 3, last}), tolerance, &floor);
  floor.set_unconfirmed(why_unconfirmed);
  compared.floor = verify::summary_of(floor, compared.difference);
  return noise_warnings({compared}, ran_in, false).at(0);
}

TEST(VerifyText, a_second_engine_is_to_be_installed_only_where_there_is_none) {
  const auto install =
      HasSubstr("if ONNX Runtime is not installed, install it with python3 -m pip install onnxruntime");
  EXPECT_THAT(warning_for(4.2, ""), install);
  EXPECT_THAT(warning_for(4.2, "", "ONNX Runtime 1.31.1"),
              HasSubstr("if OpenVINO is not installed, install it with python3 -m pip install openvino"));
  const std::string why = "another engine cannot confirm this: it cannot run the reference";
  EXPECT_THAT(warning_for(4.2, why), Not(HasSubstr("pip install")));
  EXPECT_THAT(warning_for(4.2, why), HasSubstr(why));
  EXPECT_THAT(warning_for(9, ""), Not(HasSubstr("second CPU engine"))) << "no engine was asked: it differs anyway";
}

/// The second of 20 elements becomes NaN in a draw, and the candidate has another number there.
TEST(VerifyText, elements_that_rounding_makes_nan_are_counted) {
  const onnx::TensorData reference = tensor(std::vector<double>(20, 1));
  std::vector<double> drawn(20, 1);
  drawn[1] = std::numeric_limits<double>::quiet_NaN();
  std::vector<double> other(20, 1);
  other[1] = 100;
  const auto tolerance = verify::network_tolerance(onnx::ElementType::f32);
  verify::NoiseFloor floor(tolerance);
  floor.add(reference, reference, tensor(drawn));
  const verify::Difference difference = verify::compare(reference, tensor(other), tolerance, &floor);
  ASSERT_EQ(difference.undecided, 1);
  const auto counted = HasSubstr("1 of 20 elements differ where rounding alone makes the reference NaN or infinite");
  EXPECT_THAT(report::difference_text(difference), counted);
  EXPECT_THAT(nothing_compared_warning("y", "", true, false, difference, false), counted);
  EXPECT_THAT(nothing_compared_warning("y", "", true, false, difference, false), Not(HasSubstr("was not compared")));
  EXPECT_THAT(nothing_compared_warning("y", "", false, false, difference, false), HasSubstr("was not compared"));
  EXPECT_THAT(
      nothing_compared_warning("y", "", false, true, verify::Difference(), false),
      AllOf(HasSubstr("output 'y' was not compared: it is empty in all runs;"), HasSubstr("--range NAME=1..5")));
}

/// Given data leave --seeds without effect.
TEST(VerifyText, a_difference_beyond_rounding_advises_what_has_an_effect) {
  report::VerifyReport report;
  report.runs = 1;
  report::ComparedOutput& output = report.outputs.emplace_back();
  output.reference.name = output.candidate.name = "y";
  output.compared = 1;
  output.beyond_rounding = 5;
  ASSERT_EQ(report.verdict(), report::Verdict::same);
  for (const bool has_data : {false, true}) {
    report.has_data = has_data;
    const std::vector<std::string> warnings = beyond_rounding_warnings(report);
    ASSERT_EQ(warnings.size(), 1U);
    EXPECT_THAT(warnings[0], HasSubstr("output 'y' is within the tolerance, but its largest difference"));
    EXPECT_EQ(warnings[0].find("--seeds") == std::string::npos, has_data) << warnings[0];
    EXPECT_EQ(warnings[0].find("use other data") != std::string::npos, has_data) << warnings[0];
  }
}

}  // namespace
}  // namespace graft::present

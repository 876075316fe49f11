// Runs every case of every operator on the CPU: cases that must be refused, and the reference kernel in each type
// compared with itself in f32.
#include "ops/operator_case.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <stdexcept>
#include <string>
#include <vector>

#include "graft/operator/registry.hpp"

namespace graft::ops {
namespace {

using testing::HasSubstr;

TEST(OperatorCases, CoverEveryOperatorAndTypeRow) {
  ASSERT_EQ(operator_cases().size(), operators().size());
  for (const OperatorCases& each : operator_cases()) EXPECT_EQ(check_coverage(each), "") << each.type->name;
}

class OperatorCasesOf : public testing::TestWithParam<std::string> {};

TEST_P(OperatorCasesOf, AreRefusedOrAgreeWithF32InEveryType) {
  for (const auto& [type, cases] : operator_cases()) {
    if (type->name != GetParam()) continue;
    for (const OperatorCase& test : cases) EXPECT_EQ(check_on_cpu(test), "") << test.name;
  }
}

std::vector<std::string> names_of_operators() {
  std::vector<std::string> names;
  for (const OperatorCases& each : operator_cases()) names.emplace_back(each.type->name);
  return names;
}

INSTANTIATE_TEST_SUITE_P(All, OperatorCasesOf, testing::ValuesIn(names_of_operators()),
                         [](const auto& test) { return test.param; });

TEST(OperatorCases, ChecksSeeWhatIsWrong) {
  OperatorCases some{operator_cases()[0].type, {operator_cases()[0].cases[0], operator_cases()[0].cases[0]}};
  EXPECT_THAT(check_coverage(some), HasSubstr(some.cases[0].name + ": two cases have this name"));
  EXPECT_THAT(check_coverage(some), HasSubstr("there is no case with an input of "));
  EXPECT_THAT(check_coverage(some), HasSubstr("there is no case that the operator must refuse"));
  OperatorCase& test = some.cases[0];
  test.refused = "never";
  EXPECT_THAT(check_on_cpu(test), HasSubstr("the operator does not refuse the case"));
  test.refused.clear();
  test.inputs[0].dtype = DType::i64;
  EXPECT_THAT(check_on_cpu(test), HasSubstr("the operator refuses the case: "));
  test.refused = "another message";
  EXPECT_THAT(check_on_cpu(test), HasSubstr("the case expects a message that contains: another message"));
}

/// If every kernel has the same fault, their results agree; therefore an overflow is an error by itself.
TEST(OperatorCases, OverflowOfFiniteInputsIsFound) {
  OperatorCase test{.name = "overflows",
                    .op = make_operator(*find_operator("L2NormHelper"), {{"op_type", 0}}),
                    .inputs = {{.extents = {2, 3}}},
                    .arrange = [](std::span<HostTensor> inputs) {
                      const std::array<float, 6> values{1, 4, -1, 0, 0, 0};
                      std::memcpy(inputs[0].bytes.data(), values.data(), sizeof(values));
                    }};
  EXPECT_THAT(check_on_cpu(test), HasSubstr("element 2 of 2x3: the reference kernel computes NaN from finite inputs"));
  test.may_overflow = true;
  EXPECT_EQ(check_on_cpu(test), "");

  test.may_overflow = false;
  test.arrange = [](std::span<HostTensor> inputs) {
    std::fill(inputs[0].bytes.begin(), inputs[0].bytes.end(), std::byte{0});
  };
  EXPECT_THAT(check_on_cpu(test), HasSubstr("computes infinity from finite inputs"));
  test.fill = Fill::zeros;
  EXPECT_EQ(check_on_cpu(test), "");

  const OperatorCases& all = *std::find_if(operator_cases().begin(), operator_cases().end(),
                                           [](const OperatorCases& each) { return each.type->name == "LeakyReLU"; });
  const OperatorCase& special = *std::find_if(all.cases.begin(), all.cases.end(),
                                              [](const OperatorCase& each) { return each.fill == Fill::special; });
  EXPECT_FALSE(special.may_overflow);
  EXPECT_EQ(check_on_cpu(special), "") << "NaN of inputs that have NaN is right";
}

TEST(OperatorCases, NumbersOfAttributesMayBeWrittenAsTheyCome) {
  const Attributes attributes{{"f", 1.5}, {"g", 1.5F}, {"i", 3}, {"u", 3U}, {"size", std::size_t{4}}, {"text", "max"}};
  EXPECT_EQ(attributes[0].second, AttributeValue(1.5F));
  EXPECT_EQ(attributes[1].second, AttributeValue(1.5F));
  EXPECT_EQ(attributes[2].second, AttributeValue(std::int64_t{3}));
  EXPECT_EQ(attributes[3].second, AttributeValue(std::int64_t{3}));
  EXPECT_EQ(attributes[4].second, AttributeValue(std::int64_t{4}));
  EXPECT_EQ(attributes[5].second, AttributeValue(std::string("max")));
}

TEST(OperatorCases, WhatCasesThrowNamesTheirFile) {
  try {
    static_cast<void>(made_in("my/my_cases.hpp", [] { return make_operator(*operators()[0], {{"nothing", 1}}); }));
    FAIL() << "nothing is thrown";
  } catch (const std::invalid_argument& error) {
    EXPECT_THAT(error.what(), testing::StartsWith("my/my_cases.hpp: "));
    EXPECT_THAT(error.what(), HasSubstr("nothing"));
  }
}

TEST(OperatorCases, ComparisonFindsWhatIsWrong) {
  const TensorDesc desc{.dtype = DType::f16, .layout = Layout::hwc8, .extents = {1, 3, 1, 2}};
  HostTensor tensor{.desc = desc, .bytes = std::vector<std::byte>(static_cast<std::size_t>(desc.storage_bytes()))};
  const ExpectedOutput zeros{.extents = desc.extents, .numbers = std::vector<float>(6), .integers = {}};
  EXPECT_EQ(compare(tensor, zeros, 0, 1), "");
  tensor.bytes[2 * 8 + 1] = std::byte{0x3C};  // pixel 1, channel 0 is 1.0
  EXPECT_THAT(compare(tensor, zeros, 0, 1), HasSubstr("element 1 of f16 hwc8 1x3x1x2: found 1.0"));
  tensor.bytes[2 * 8 + 1] = std::byte{0};
  tensor.bytes[2 * 7 + 1] = std::byte{0x3C};  // pixel 0, the last channel of the padding
  EXPECT_THAT(compare(tensor, zeros, 0, 1), HasSubstr("the padding at stored element 7"));
}

/// Compares only the expected elements where the memory has room for more, and integers exactly, also where f32 cannot
/// distinguish them.
TEST(OperatorCases, ComparisonIsOfIntegersAndTrueSizes) {
  constexpr std::int64_t large = (std::int64_t{1} << 60) + 1;
  HostTensor tensor{.desc = {.dtype = DType::i64, .extents = {4}}, .bytes = std::vector<std::byte>(32)};
  std::memcpy(tensor.bytes.data(), &large, sizeof(large));
  ExpectedOutput expected{.extents = {1}, .numbers = {}, .integers = {large}};
  EXPECT_EQ(compare(tensor, expected, 0.5, 1), "");
  expected.integers = {large + 1};
  EXPECT_THAT(compare(tensor, expected, 0.5, 1), HasSubstr("found 1152921504606846977, expected 1152921504606846978"));
  expected = {.extents = {5}, .numbers = {}, .integers = {large, 0, 0, 0, 0}};
  EXPECT_THAT(compare(tensor, expected, 0.5, 1), HasSubstr("the output has 32 bytes; i64 5 has 40"));
}

template <class Element>
HostTensor tensor_of(DType dtype, const std::vector<Element>& values) {
  const auto* bytes = reinterpret_cast<const std::byte*>(values.data());
  return {{.dtype = dtype, .layout = Layout::linear, .extents = {std::ssize(values)}},
          {bytes, bytes + values.size() * sizeof(Element)}};
}

ExpectedOutput numbers(std::vector<float> values) {
  const Extents extents{std::ssize(values)};
  return {.extents = extents, .numbers = std::move(values), .integers = {}};
}

TEST(OperatorCases, ErrorsAreCountedInStepsOfTheType) {
  constexpr std::uint16_t one = 0x3C00;  // f16
  const auto found = tensor_of<std::uint16_t>(DType::f16, {one, one + 1, one - 2, 0x7C00});
  const Errors errors = errors_of(found, numbers({1, 1, 1, 1}), 0x1p-8, 1);
  EXPECT_EQ(errors.results, 3);  // infinity is left to `compare`
  EXPECT_EQ(errors.off, 2);
  EXPECT_EQ(errors.beyond, 0);              // steps below 1 are half as large
  EXPECT_DOUBLE_EQ(errors.of_bound, 0.25);  // a step of 2^-10 of the allowed 2^-8

  const auto far = tensor_of<std::uint16_t>(DType::f16, {one + 3, 0x4400});
  const Errors more = errors_of(far, numbers({1, 4}), 0x1p-8, 1);
  EXPECT_EQ(more.beyond, 1);
  EXPECT_DOUBLE_EQ(more.beyond_size, 0.25);
  EXPECT_DOUBLE_EQ(more.beyond_error, 3 * 0x1p-10 / 4);

  Errors both = errors;
  both += more;
  EXPECT_EQ(both.results, 5);
  EXPECT_EQ(both.beyond, 1);
}

TEST(OperatorCases, ErrorsOfF32AreAPartOfTheBound) {
  const Errors errors = errors_of(tensor_of<float>(DType::f32, {1.F + 0x1p-22F, 2}), numbers({1, 2}), 0x1p-20, 1);
  EXPECT_EQ(errors.off, 1);
  EXPECT_DOUBLE_EQ(errors.of_bound, 0.25);
}

TEST(OperatorCases, ErrorsOfI8AreFarFromOrAtTies) {
  const auto found = tensor_of<std::int8_t>(DType::i8, {3, 3, 127});
  const Errors at_tie = errors_of(found, numbers({0.625F, 0.75F, 50}), 0x1p-20, 0.25F);
  EXPECT_EQ(at_tie.off, 1);  // 2.5 is 2, ties to even
  EXPECT_EQ(at_tie.from_tie, 0);
  const Errors not_at_tie = errors_of(found, numbers({0.5625F, 0.75F, 50}), 0.5, 0.25F);
  EXPECT_EQ(not_at_tie.off, 1);  // 2.25
  EXPECT_DOUBLE_EQ(not_at_tie.from_tie, 0.25);
}

}  // namespace
}  // namespace graft::ops

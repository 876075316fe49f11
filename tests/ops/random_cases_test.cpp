// Tests the problems of `graft bench --random`: equal for equal seeds, valid, and within the declared ranges.
#include "ops/random_cases.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <string>

namespace graft::ops {
namespace {

constexpr int count = 60;

std::string text_of(const TimedCase& timed) {
  std::string text;
  for (const TensorDesc& desc : timed.inputs) text += to_string(desc) + ' ';
  for (const auto& [name, value] : timed.attributes) text += name + '=' + to_string(value) + ' ';
  return text;
}

std::vector<std::string> texts_of(const OperatorTimings& each, std::uint64_t seed) {
  std::vector<std::string> texts;
  for (const TimedCase& timed : random_cases(*each.type, each.draw, seed, count)) texts.push_back(text_of(timed));
  return texts;
}

TEST(Draw, NumbersLieInTheirRange) {
  Draw draw(1);
  for (const SizeRange range : {SizeRange{1, 1}, {0, 3}, {16, 512, 8}, {17, 33, 8}, {2, 1 << 22}}) {
    std::set<std::int64_t> sizes;
    for (int i = 0; i < 1000; ++i) {
      const std::int64_t size = draw.size(range);
      EXPECT_TRUE(range.has(size)) << size;
      EXPECT_TRUE(range.has(draw.integer(range)));
      sizes.insert(size);
    }
    const std::int64_t all = range.most / range.step - (range.least + range.step - 1) / range.step + 1;
    if (all < 10) {
      EXPECT_EQ(static_cast<std::int64_t>(sizes.size()), all);
    }
  }
}

TEST(Draw, SmallSizesAreAsLikelyAsLargeOnes) {
  Draw draw(2);
  int small = 0;
  for (int i = 0; i < 10000; ++i) small += draw.size({1, 1 << 20}) < 1 << 10 ? 1 : 0;
  EXPECT_NEAR(small, 5000, 300);
}

TEST(Draw, ARangeWithoutANumberIsRefused) {
  Draw draw(3);
  EXPECT_THROW((void)draw.integer({9, 15, 8}), std::invalid_argument);
}

TEST(RandomCases, AreTheSameForASeedAndOthersForAnother) {
  for (const OperatorTimings& each : operator_timings()) {
    if (each.draw == nullptr) continue;
    EXPECT_EQ(texts_of(each, 1), texts_of(each, 1)) << each.type->name;
    EXPECT_NE(texts_of(each, 1), texts_of(each, 2)) << each.type->name;
  }
}

TEST(RandomCases, AreDifferentAndAsManyAsAskedFor) {
  for (const OperatorTimings& each : operator_timings()) {
    if (each.draw == nullptr) continue;
    const std::vector<std::string> texts = texts_of(each, 3);
    EXPECT_EQ(texts.size(), count) << each.type->name;
    EXPECT_EQ(std::set(texts.begin(), texts.end()).size(), texts.size()) << each.type->name;
  }
}

TEST(RandomCases, AreValidAndOfTheStatedSizes) {
  for (const OperatorTimings& each : operator_timings()) {
    if (each.draw == nullptr) continue;
    for (const std::uint64_t seed : {4, 5, 6}) {
      for (const TimedCase& timed : random_cases(*each.type, each.draw, seed, count)) {
        const std::string text = std::string(each.type->name) + ' ' + text_of(timed);
        const auto op = make_operator(*each.type, timed.attributes);
        const std::vector<TensorDesc> outputs = output_descs(*op, timed.inputs);
        const Status status = op->check({timed.inputs, outputs});
        EXPECT_TRUE(status.ok()) << text << ": " << status.message();
        const std::int64_t elements =
            std::max(timed.inputs[0].extents.element_count(), outputs[0].extents.element_count());
        EXPECT_GE(elements, drawn_elements.least) << text;
        EXPECT_LE(elements, 8 * drawn_elements.most) << text;
        EXPECT_NE(timed.inputs[0].dtype, DType::i8) << text;  // PyTorch has no such operators
      }
    }
  }
}

TEST(RandomCases, MultiplesOfEightAreAmongTheChannels) {
  for (const OperatorTimings& each : operator_timings()) {
    if (each.draw == nullptr || each.type->name == "LeakyReLU") continue;
    int multiples = 0;
    int others = 0;
    for (const TimedCase& timed : random_cases(*each.type, each.draw, 7, count)) {
      if (timed.inputs[0].extents.rank() < 2) continue;
      (timed.inputs[0].extents[1] % 8 == 0 ? multiples : others) += 1;
    }
    EXPECT_GE(multiples, count / 5) << each.type->name;
    EXPECT_GE(others, 1) << each.type->name;
  }
}

}  // namespace
}  // namespace graft::ops

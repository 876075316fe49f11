// Tests suggested sizes for the inputs of a part of a model.
#include "inspect/size_ranges.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "tests/support/text_model.hpp"

namespace graft::inspect {
namespace {

using testing::HasSubstr;

onnx::Model part_with(const std::vector<std::pair<std::string, Shape>>& inputs) {
  std::vector<test::TextInput> described;
  for (const auto& [name, shape] : inputs) described.emplace_back(name, onnx::ElementType::f32, shape);
  return test::text_model(described, "", {});
}

TEST(SizeRanges, one_symbol_has_one_size_and_what_is_computed_from_it_goes_with_it) {
  const onnx::Model part = part_with({{"a", {Dim::symbol("n"), Dim(4)}},
                                      {"b", {Dim::symbol("n") * Dim(4)}},
                                      {"c", {Dim::symbol("n") + Dim::symbol("m")}}});
  const SizeRanges ranges(onnx::Model(), {});
  EXPECT_EQ(ranges.of(part), (std::vector<std::string>{"a=1x4..16x4..64x4", "b=4..64..256", "c=2..32..128"}));
}

TEST(SizeRanges, a_given_size_goes_with_one_that_was_not_given) {
  const onnx::Model whole = part_with({{"x", {Dim::symbol("n")}}});
  const onnx::Model part = part_with({{"a", {Dim::symbol("n") * Dim::symbol("m")}}});
  const SizeRanges ranges(whole, {"x=2..3..5"});
  EXPECT_EQ(ranges.of(part), (std::vector<std::string>{"a=2..48..320"}));
}

TEST(SizeRanges, sizes_below_nothing_are_no_range) {
  const onnx::Model part = part_with({{"a", {Dim::symbol("n")}}, {"b", {Dim::symbol("n") - Dim(3)}}});
  const SizeRanges ranges(onnx::Model(), {});
  EXPECT_EQ(ranges.of(part), (std::vector<std::string>{"a=16..16..64", "b=13..13..61"}));
}

TEST(SizeRanges, RefuseSizesThatTheInputCannotHave) {
  const Dim n = Dim::symbol("n");
  const onnx::Model model =
      test::text_model({{"x", onnx::ElementType::f32, {n, Dim(4)}}, {"k", onnx::ElementType::i64, {n}}}, "", {});
  const auto fault = [&](const std::string& range) { return test::error_of([&] { SizeRanges(model, {range}); }); };
  EXPECT_EQ(fault("x=1x4..4x4..8x4"), "");
  EXPECT_EQ(fault("x=0x4"), "");
  EXPECT_EQ(fault("k=1..4..5000000000"), "") << "the values of a tensor that is read as sizes";
  EXPECT_THAT(fault("x=-1x4"), HasSubstr("'-1' is not a size"));
  EXPECT_THAT(fault("x=8x4..4x4..1x4"),
              HasSubstr("x=8x4..4x4..1x4: dimension 0 has the minimum 8, the optimum 4 and the maximum 1\n"));
  EXPECT_THAT(fault("k=4..4..2"), HasSubstr("dimension 0 has the minimum 4, the optimum 4 and the maximum 2\n"));
  EXPECT_THAT(fault("x=1x4..2x4..4x4x4"),
              HasSubstr("the minimum, the optimum and the maximum have 2, 2 and 3 dimensions\n"));
  EXPECT_THAT(fault("x=1x4x1"), HasSubstr("the minimum has 3 dimensions, but the input has 2\n"));
  EXPECT_THAT(fault("x=1x4..1x5..1x5"), HasSubstr("the optimum has the size 5 in dimension 1, which the model fixes at "
                                                  "4\nSet shapes that input 'x' can have; the model declares [n, 4]"));
  EXPECT_THAT(fault("x=3000000000x4"), HasSubstr("the size 3000000000 is outside the range 0 to 2147483647\n"));
}

TEST(SizeRanges, RefuseTwoSizesOfOneSymbol) {
  const Dim n = Dim::symbol("n");
  constexpr auto f32 = onnx::ElementType::f32;
  const onnx::Model model =
      test::text_model({{"x", f32, {n, Dim(4)}}, {"q", f32, {n, Dim(4)}}, {"s", f32, {n, n}}}, "", {});
  const auto fault = [&](const std::vector<std::string>& ranges) {
    return test::error_of([&] { SizeRanges(model, ranges); });
  };
  EXPECT_EQ(fault({"x=1x4..2x4..3x4", "q=1x4..2x4..3x4"}), "");
  EXPECT_THAT(
      fault({"x=2x4", "q=3x4"}),
      HasSubstr("q=3x4: the minimum has 3 for dimension 'n' of input 'q', and 2 for the same dimension of input "
                "'x'\n"));
  EXPECT_THAT(fault({"q=1x4..2x4..8x4", "x=1x4..2x4..4x4"}), HasSubstr("the maximum has 8 for dimension 'n'"));
  EXPECT_THAT(fault({"s=2x3"}),
              HasSubstr("3 for dimension 'n' of input 's', and 2 for the same dimension of input 's'"));
  SizeRanges suggesting(model, {"x=5x4"}, true);
  EXPECT_GT(suggesting.suggestion_count(), 0) << "suggested sizes give way to given ones";
}

TEST(SizeRanges, RefuseNumbersThatAreNeitherTheShapeNorAllValues) {
  constexpr auto i64 = onnx::ElementType::i64;
  const onnx::Model model =
      test::text_model({{"i", i64, {Dim(5)}}, {"one", i64, {Dim(1)}}, {"scalar", i64, Shape{}}}, "", {});
  const auto fault = [&](const std::string& range) { return test::error_of([&] { SizeRanges(model, {range}); }); };
  for (const std::string range : {"i=5", "i=1x1x1x1x1..2x1x1x3x1..2x1x1x3x9", "one=1", "one=7", "scalar=3..4..5"}) {
    EXPECT_EQ(fault(range), "") << range;
  }
  EXPECT_THAT(fault("i=7"), HasSubstr("i=7: the minimum has the size 7 in dimension 0, which the model fixes at 5\n"));
  EXPECT_THAT(fault("i=2x3"), HasSubstr("the minimum has 2 dimensions, but the input has 1\n"));
  EXPECT_THAT(fault("scalar=2x3"), HasSubstr("the minimum has 2 dimensions, but the input has 0\n"));
}

/// TensorRT builds each of these networks even for sizes that ONNX Runtime refuses to run.
TEST(SuggestedRanges, are_sizes_that_the_network_computes) {
  const auto sizes_of = [](const onnx::Model& model) { return ranges_worth_a_build(model).front(); };
  const Dim n = Dim::symbol("n");
  const Dim s = Dim::symbol("s");
  const Dim m = Dim::symbol("m");
  constexpr auto f32 = onnx::ElementType::f32;
  SuggestedRanges found = sizes_of(test::text_model({{"x", f32, {n, s}}, {"y", f32, {m}}}, "z = Add(x, y)", {"z"}));
  EXPECT_EQ(found["x"].sizes, "1x1..4x128..8x512");
  EXPECT_EQ(found["y"].sizes, "1..128..512");
  found = sizes_of(
      test::text_model({{"x", f32, {n, Dim(3), s, m}}, test::weight("w", {4, 3, 7, 7})}, "z = Conv(x, w)", {"z"}));
  EXPECT_EQ(found["x"].sizes, "1x3x7x7..4x3x224x224..8x3x512x512");
  found = sizes_of(test::text_model({{"x", f32, {n, s}}, test::weight("w", {77})}, "z = Add(x, w)", {"z"}));
  EXPECT_EQ(found["x"].sizes, "1x1..4x77..8x77");
  found = sizes_of(test::text_model({{"x", f32, {n, s}}},
                                    "i = Constant<value_ints=[0, -2, 40]>()\nz = Gather<axis=1>(x, i)", {"z"}));
  EXPECT_EQ(found["x"].sizes, "1x64..4x128..8x512") << "an index lies outside of 28 and 32 columns";
  found = sizes_of(test::text_model({{"x", f32, {n, s}}},
                                    "p = Constant<value_ints=[10, 38]>()\na, b = Split<axis=1>(x, p)", {"a", "b"}));
  EXPECT_EQ(found["x"].sizes, "1x48..4x48..8x48") << "the parts have 48 columns together";
  EXPECT_TRUE(found["x"].is_computable);
  found = sizes_of(test::text_model({{"x", f32, {n, s}}},
                                    "p = Constant<value_ints=[10, 47]>()\na, b = Split<axis=1>(x, p)", {"a", "b"}));
  EXPECT_FALSE(found["x"].is_computable) << "57 is not among the sizes that are tried";
}

}  // namespace
}  // namespace graft::inspect

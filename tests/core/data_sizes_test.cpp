// Tests sizes that depend on data: the shapes that an operator may declare, and the values that it may write.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <vector>

#include "graft/operator/define_operator.hpp"

namespace graft {
namespace {

using testing::HasSubstr;

/// An operator whose infer_shapes returns the shapes that the test sets.
struct Sized {
  static constexpr auto name = "Sized";
  static constexpr int version = 1;
  static constexpr auto doc = "a test";
  static constexpr auto source = "a test";
  static constexpr auto why_plugin = "a test";
  static inline std::vector<Shape> shapes;

  static constexpr auto attributes() { return std::tuple{}; }
  static constexpr auto ports() {
    return std::array{input("x", "T", "N", ""), output("y", "T", "count", ""), output("z", "T", "count", ""),
                      size_output("count", "")};
  }
  static constexpr auto types() { return std::array{TypeConstraint("T", DType::f32)}; }
  static std::vector<Shape> infer_shapes(std::span<const Shape> /*inputs*/) { return shapes; }
};
Status run(const Sized& /*op*/, const Problem& /*problem*/, const Buffers& /*buffers*/, const CpuContext& /*context*/) {
  return {};
}

Status status_of(std::vector<Shape> shapes) {
  Sized::shapes = std::move(shapes);
  const std::vector<Shape> inputs{{8}};
  std::vector<Shape> outputs;
  return OperatorOf<Sized>().infer_shapes(inputs, outputs);
}

TEST(DataSizes, AreThoseOfSizeOutputs) {
  const Dim size = data_size(2, 4, 8);
  EXPECT_TRUE(status_of({{size}, {size, 3}, {}}).ok());
  EXPECT_THAT(status_of({{size}, {size}}).message(), HasSubstr("returned 2 shapes for 3 outputs"));
  EXPECT_THAT(status_of({{data_size(1, 4, 8)}, {3}, {}}).message(), HasSubstr("names output 1 as a size"));
  EXPECT_THAT(status_of({{data_size(3, 4, 8)}, {3}, {}}).message(), HasSubstr("names output 3 as a size"));
  EXPECT_THAT(status_of({{8}, {3}, {}}).message(), HasSubstr("has no data_size() of `count`"));
  EXPECT_THAT(status_of({{size}, {3}, {1}}).message(), HasSubstr("but it is not a size_output() of rank 0"));
  EXPECT_THAT(status_of({{size}, {data_size(2, 4, 9)}, {}}).message(), HasSubstr("two different bounds for one size"));
  EXPECT_THAT(status_of({{data_size(2, 9, 8)}, {3}, {}}).message(), HasSubstr("an optimum outside of 0"));
}

/// Calls read_extents with `size` as the value that the kernel wrote, as i32 or i64.
template <class Size>
Status extents_with(Size size, std::vector<Extents>& extents) {
  Sized::shapes = {{data_size(2, 4, 8)}, {data_size(2, 4, 8), 3}, {}};
  const std::array inputs{TensorDesc{.dtype = DType::f32, .extents = {8}}};
  const DType dtype = sizeof(Size) == sizeof(std::int64_t) ? DType::i64 : DType::i32;
  const std::array outputs{TensorDesc{.dtype = DType::f32, .extents = {8}},
                           TensorDesc{.dtype = DType::f32, .extents = {8, 3}},
                           TensorDesc{.dtype = dtype, .extents = {}}};
  const Problem problem{inputs, outputs};
  EXPECT_TRUE(OperatorOf<Sized>().check(problem).ok());
  const std::array<const void*, 3> addresses{nullptr, nullptr, &size};
  return read_extents(OperatorOf<Sized>(), problem, addresses, extents);
}

TEST(DataSizes, AreReadFromWhatTheKernelWrote) {
  std::vector<Extents> extents;
  for (const std::int64_t size : {0, 5, 8}) {
    ASSERT_TRUE(extents_with<std::int64_t>(size, extents).ok());
    EXPECT_EQ(extents[0], Extents{size});
    EXPECT_EQ(extents[1], (Extents{size, 3}));
    ASSERT_TRUE(extents_with<std::int32_t>(static_cast<std::int32_t>(size), extents).ok());
    EXPECT_EQ(extents[1], (Extents{size, 3}));
  }
  EXPECT_THAT(extents_with<std::int64_t>(9, extents).message(), HasSubstr("`count` is 9; it must be between 0 and 8"));
  EXPECT_THAT(extents_with<std::int32_t>(-1, extents).message(),
              HasSubstr("`count` is -1; it must be between 0 and 8"));
}

TEST(DataSizes, OutputsHaveTheirLargestSizeInProblems) {
  Sized::shapes = {{data_size(2, 4, 8)}, {3}, {}};
  const std::array inputs{TensorDesc{.dtype = DType::f32, .extents = {8}}};
  std::array outputs{TensorDesc{.dtype = DType::f32, .extents = {7}}, TensorDesc{.dtype = DType::f32, .extents = {3}},
                     TensorDesc{.dtype = DType::i64, .extents = {}}};
  EXPECT_THAT(OperatorOf<Sized>().check({inputs, outputs}).message(), HasSubstr("has shape 7; it must have shape 8"));
  outputs[0].extents = {8};
  EXPECT_TRUE(OperatorOf<Sized>().check({inputs, outputs}).ok());
  outputs[2].dtype = DType::f32;
  EXPECT_THAT(OperatorOf<Sized>().check({inputs, outputs}).message(), HasSubstr("does not take"));
  constexpr std::int64_t many = std::int64_t{1} << 31;
  Sized::shapes = {{data_size(2, 4, many - 1), 2}, {3}, {}};
  outputs[0].extents = {many - 1, 2};
  outputs[2].dtype = DType::i32;
  EXPECT_TRUE(OperatorOf<Sized>().check({inputs, outputs}).ok()) << "a size of 32 bits, of more elements";
  Sized::shapes = {{data_size(2, 4, many)}, {3}, {}};
  outputs[0].extents = {many};
  outputs[2].dtype = DType::i64;
  EXPECT_TRUE(OperatorOf<Sized>().check({inputs, outputs}).ok());
  outputs[2].dtype = DType::i32;
  EXPECT_THAT(OperatorOf<Sized>().check({inputs, outputs}).message(),
              HasSubstr("`count` can reach 2147483648; it may be at most 2147483647, because sizes in this release of "
                        "TensorRT have 32 bits"));
}

}  // namespace
}  // namespace graft

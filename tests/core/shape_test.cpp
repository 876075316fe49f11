// Compares dimension expressions and extents with 64-bit integer arithmetic.
#include "graft/operator/shape.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <limits>
#include <stdexcept>

#include "graft/operator/tensor.hpp"

namespace graft {
namespace {

constexpr std::int64_t largest = std::numeric_limits<std::int64_t>::max();

std::optional<std::int64_t> with_n(const Dim& dim, std::int64_t n) {
  return dim.evaluate([n](const std::string& name) -> std::optional<std::int64_t> {
    if (name == "n") return n;
    return std::nullopt;
  });
}

TEST(Dim, ConstantsFold) {
  EXPECT_TRUE((Dim(3) * 4 + 5).is_constant());
  EXPECT_EQ((Dim(3) * 4 + 5).value(), 17);
}

TEST(Dim, DivisionsRoundAsTheMathematicsSays) {
  for (std::int64_t a = -7; a <= 7; ++a) {
    for (std::int64_t b = -3; b <= 3; ++b) {
      if (b == 0) continue;
      const double exact = static_cast<double>(a) / static_cast<double>(b);
      EXPECT_EQ(floor_div(a, b).value(), static_cast<std::int64_t>(std::floor(exact))) << a << " / " << b;
      EXPECT_EQ(ceil_div(a, b).value(), static_cast<std::int64_t>(std::ceil(exact))) << a << " / " << b;
    }
  }
}

TEST(Dim, SymbolsAreEvaluatedLikeIntegers) {
  const Dim n = Dim::symbol("n");
  const Dim expression = max(min(ceil_div(n * 3 - 2, 4), Dim(9)), floor_div(n, 5)) + equal(n, 7) + less(n, 3);
  EXPECT_FALSE(expression.is_constant());
  for (std::int64_t value = 1; value < 100; ++value) {
    const std::int64_t expected = std::max(std::min((value * 3 - 2 + 3) / 4, std::int64_t{9}), value / 5) +
                                  (value == 7 ? 1 : 0) + (value < 3 ? 1 : 0);
    EXPECT_EQ(with_n(expression, value), expected) << value;
  }
  EXPECT_EQ(with_n(Dim::symbol("m") + 1, 3), std::nullopt);
}

TEST(Dim, ReadsAsPeopleWriteIt) {
  const Dim n = Dim::symbol("n");
  EXPECT_EQ((n * 2 + 1).to_string(), "((n * 2) + 1)");
  EXPECT_EQ(ceil_div(n, 4).to_string(), "ceil_div(n, 4)");
  EXPECT_EQ(to_string(Shape{n, 3}), "[n, 3]");
}

TEST(Dim, NeutralElementsDisappear) {
  const Dim n = Dim::symbol("n");
  EXPECT_EQ(n + 0, n);
  EXPECT_EQ(n * 1, n);
  EXPECT_EQ(Dim(1) * n, n);
  EXPECT_EQ(max(n, n), n);
  EXPECT_FALSE(n == Dim::symbol("m"));
  EXPECT_FALSE(n + 1 == n + 2);
}

TEST(Dim, ArithmeticBeyond64BitsIsAnError) {
  EXPECT_THROW(static_cast<void>(Dim(largest) + 1), std::overflow_error);
  EXPECT_THROW(static_cast<void>(Dim(largest) * 2), std::overflow_error);
  EXPECT_THROW(static_cast<void>(Dim(std::numeric_limits<std::int64_t>::min()) - 1), std::overflow_error);
  EXPECT_THROW(static_cast<void>(floor_div(1, 0)), std::domain_error);
  EXPECT_THROW(static_cast<void>(floor_div(std::numeric_limits<std::int64_t>::min(), -1)), std::overflow_error);
}

TEST(Dim, SizesThatDependOnDataHaveBounds) {
  const Dim n = Dim::symbol("n");
  const Dim size = data_size(2, ceil_div(n, 2), n);
  EXPECT_EQ(size.kind(), Dim::Kind::data_size);
  EXPECT_EQ(size.size_output(), 2U);
  EXPECT_EQ(size.to_string(), "0 to n");
  EXPECT_EQ(size.largest(), std::nullopt);
  EXPECT_EQ(with_n(size, 7), std::nullopt);
  EXPECT_EQ(data_size(0, 4, 8).largest(), 8);
  EXPECT_EQ(Dim(5).largest(), 5);
  EXPECT_EQ(size, data_size(2, ceil_div(n, 2), n));
  EXPECT_FALSE(size == data_size(1, ceil_div(n, 2), n));
  EXPECT_FALSE(size == data_size(2, n, n));
  EXPECT_FALSE(data_size(0, 4, 8).is_constant());
  EXPECT_THROW(static_cast<void>(size + 1), std::domain_error);
  EXPECT_THROW(static_cast<void>(max(n, size)), std::domain_error);
  EXPECT_THROW(static_cast<void>(data_size(0, size, n)), std::domain_error);
}

TEST(Extents, CountsElementsWithoutOverflow) {
  EXPECT_EQ(Extents{}.element_count(), 1);
  EXPECT_EQ((Extents{2, 3, 4}).element_count(), 24);
  EXPECT_EQ((Extents{largest, largest, 0}).element_count(), 0);
  EXPECT_EQ((Extents{largest, 2}).element_count(), largest);
}

TEST(Extents, RefusesTooManyAndNegativeDimensions) {
  Extents extents;
  EXPECT_TRUE(Extents::make({1, 2, 3}, extents).ok());
  EXPECT_EQ(extents, (Extents{1, 2, 3}));
  EXPECT_FALSE(Extents::make({1, 1, 1, 1, 1, 1, 1, 1, 1}, extents).ok());
  EXPECT_FALSE(Extents::make({1, -1}, extents).ok());
  EXPECT_EQ(extents, (Extents{1, 2, 3})) << "a failure leaves the result as it was";
}

TEST(TensorDesc, PaddingOfVectorizedLayoutsCounts) {
  EXPECT_EQ((TensorDesc{DType::f16, Layout::linear, {2, 3, 4, 5}}).storage_bytes(), 2 * 3 * 4 * 5 * 2);
  EXPECT_EQ((TensorDesc{DType::f16, Layout::hwc8, {2, 3, 4, 5}}).storage_bytes(), 2 * 8 * 4 * 5 * 2);
  EXPECT_EQ((TensorDesc{DType::i8, Layout::chw32, {2, 33, 4, 5}}).storage_bytes(), 2 * 64 * 4 * 5);
  EXPECT_EQ((TensorDesc{DType::f32, Layout::linear, {largest}}).storage_bytes(), largest);
}

}  // namespace
}  // namespace graft

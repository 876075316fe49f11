// Tests typed access to constants. The expected bytes follow IEEE 754 and ONNX's packing rules.
#include "onnx/tensor_data.hpp"

#include <gtest/gtest.h>

#include <Eigen/Core>
#include <array>
#include <bit>
#include <cmath>
#include <limits>

#include "onnx/elements.hpp"
#include "tests/support/text_model.hpp"

namespace graft::test {
namespace {

onnx::TensorData raw(onnx::ElementType type, std::vector<std::int64_t> dims, std::string bytes) {
  onnx::TensorData tensor;
  tensor.type = type;
  tensor.dims = std::move(dims);
  tensor.bytes = onnx::Bytes(std::move(bytes));
  return tensor;
}

using Doubles = std::vector<double>;
using Ints = std::vector<std::int64_t>;

TEST(TensorData, ReadsEveryFloatingPointType) {
  EXPECT_EQ(raw(onnx::ElementType::f32, {2}, std::string("\x00\x00\x80\x3f\x00\x00\x00\xc0", 8)).numbers(),
            (Doubles{1, -2}));
  EXPECT_EQ(raw(onnx::ElementType::f16, {2}, std::string("\x00\x3c\x00\xc0", 4)).numbers(), (Doubles{1, -2}));
  EXPECT_EQ(raw(onnx::ElementType::bf16, {2}, std::string("\x80\x3f\x00\xc0", 4)).numbers(), (Doubles{1, -2}));
  EXPECT_EQ(raw(onnx::ElementType::f64, {}, std::string("\x00\x00\x00\x00\x00\x00\xf0\x3f", 8)).scalar(), 1.0);
}

TEST(TensorData, ReadsPackedIntegers) {
  EXPECT_EQ(raw(onnx::ElementType::i4, {3}, "\xf1\x07").ints(), (Ints{1, -1, 7}));
  EXPECT_EQ(raw(onnx::ElementType::u4, {3}, "\xf1\x07").ints(), (Ints{1, 15, 7}));
  EXPECT_EQ(raw(onnx::ElementType::i2, {4}, "\xe4").ints(), (Ints{0, 1, -2, -1}));
  EXPECT_EQ(raw(onnx::ElementType::u2, {4}, "\xe4").ints(), (Ints{0, 1, 2, 3}));
}

TEST(TensorData, ReadsBooleansAndSigns) {
  EXPECT_EQ(raw(onnx::ElementType::boolean, {2}, std::string("\x00\x01", 2)).ints(), (Ints{0, 1}));
  EXPECT_EQ(raw(onnx::ElementType::i8, {1}, "\xff").ints(), (Ints{-1}));
  EXPECT_EQ(raw(onnx::ElementType::u8, {1}, "\xff").ints(), (Ints{255}));
  EXPECT_EQ(raw(onnx::ElementType::i16, {1}, "\xff\xff").ints(), (Ints{-1}));
}

TEST(TensorData, RefusesWhatItCannotSay) {
  EXPECT_FALSE(onnx::TensorData::from_floats({1, 2}).scalar());
  EXPECT_FALSE(onnx::TensorData::from_floats({1}).ints());
  EXPECT_FALSE(onnx::TensorData::from_strings({"a"}).numbers());
  EXPECT_FALSE(raw(onnx::ElementType::f8e5m2, {1}, "a").numbers());
  EXPECT_NE(error_of([] { (void)onnx::TensorData::from_numbers(onnx::ElementType::complex64, {1}, {1}); }), "");
  EXPECT_NE(error_of([] { (void)onnx::TensorData::from_numbers(onnx::ElementType::f32, {3}, {1}); }), "");
}

TEST(TensorData, RoundsAndSaturates) {
  EXPECT_EQ(onnx::TensorData::from_numbers(onnx::ElementType::i8, {4}, {2.5, 3.5, 1000, -1000}).ints(),
            (Ints{2, 4, 127, -128}));
  EXPECT_EQ(onnx::TensorData::scalar_of(onnx::ElementType::i64, 1e300).ints(), (Ints{INT64_MAX}));
  EXPECT_EQ(onnx::TensorData::scalar_of(onnx::ElementType::f16, 1.0 + 1.0 / 4096).scalar(),
            1.0);  // half an ulp: to even
}

TEST(TensorData, CountsElementsWithin64Bits) {
  onnx::TensorData tensor;
  tensor.dims = {INT64_MAX, 2};
  EXPECT_NE(error_of([&] { (void)tensor.element_count(); }), "");
  tensor.dims = {INT64_MAX, 2, 0};
  EXPECT_EQ(tensor.element_count(), 0);
}

TEST(TensorData, NamesOfTypes) {
  EXPECT_EQ(onnx::parse_element_type("FLOAT"), onnx::ElementType::f32);
  EXPECT_EQ(onnx::parse_element_type("bf16"), onnx::ElementType::bf16);
  EXPECT_EQ(onnx::parse_element_type("half"), std::nullopt);
  EXPECT_EQ(to_string(static_cast<onnx::ElementType>(99)), "type 99");
  EXPECT_EQ(to_dtype(onnx::ElementType::f64), std::nullopt);
  EXPECT_EQ(to_dtype(onnx::ElementType::i8), DType::i8);
}

/// Tests the rounding to a 16-bit type at every number, at the midpoint between it and the next number, and at the
/// floats next to both, where a slightly wrong rounding shows.
template <class Narrow>
void expect_as_eigen(float (*round)(float)) {
  constexpr std::uint32_t patterns = 1U << 16;
  for (std::uint32_t bits = 0; bits < patterns; ++bits) {
    const auto number = static_cast<float>(std::bit_cast<Narrow>(static_cast<std::uint16_t>(bits)));
    const auto next = static_cast<float>(std::bit_cast<Narrow>(static_cast<std::uint16_t>(bits + 1)));
    for (const float at : std::array{number, number + (next - number) / 2}) {
      for (const float value : {std::nextafter(at, -std::numeric_limits<float>::infinity()), at,
                                std::nextafter(at, std::numeric_limits<float>::infinity())}) {
        const auto expected = static_cast<float>(Narrow(value));
        const float found = round(value);
        if (std::isnan(expected)) {
          ASSERT_TRUE(std::isnan(found)) << value;
        } else {
          ASSERT_EQ(std::bit_cast<std::uint32_t>(found), std::bit_cast<std::uint32_t>(expected)) << value;
        }
      }
    }
  }
}

TEST(Elements, RoundAsEigenDoes) {
  expect_as_eigen<Eigen::half>(onnx::round_to_f16);
  expect_as_eigen<Eigen::bfloat16>(onnx::round_to_bf16);
  for (const float limit : {65519.996F, 65520.0F, 1e38F, std::numeric_limits<float>::infinity()}) {
    EXPECT_EQ(onnx::round_to_f16(limit), static_cast<float>(Eigen::half(limit))) << limit;
    EXPECT_EQ(onnx::round_to_f16(-limit), static_cast<float>(Eigen::half(-limit))) << limit;
  }
}

TEST(Elements, TypesWithoutNumbersAreNotWalked) {
  const auto refuse = [](auto) { FAIL(); };
  EXPECT_FALSE(for_each_number(raw(onnx::ElementType::f8e5m2, {1}, "a"), refuse));
  EXPECT_FALSE(for_each_number(raw(onnx::ElementType::complex64, {1}, "abcdefgh"), refuse));
  EXPECT_FALSE(onnx::for_each_int(raw(onnx::ElementType::f32, {1}, "abcd"), refuse));
}

}  // namespace
}  // namespace graft::test

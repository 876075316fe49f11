// Typed access to constants. The bytes are those that IEEE 754 and ONNX's packing rules prescribe.
#include "graph/tensor_data.hpp"

#include <gtest/gtest.h>

#include "build.hpp"

namespace graft::test {
namespace {

TensorData raw(ElementType type, std::vector<std::int64_t> dims, std::string bytes) {
  TensorData tensor;
  tensor.type = type;
  tensor.dims = std::move(dims);
  tensor.bytes = Bytes(std::move(bytes));
  return tensor;
}

using Doubles = std::vector<double>;
using Ints = std::vector<std::int64_t>;

TEST(TensorData, ReadsEveryFloatingPointType) {
  EXPECT_EQ(raw(ElementType::f32, {2}, std::string("\x00\x00\x80\x3f\x00\x00\x00\xc0", 8)).numbers(), (Doubles{1, -2}));
  EXPECT_EQ(raw(ElementType::f16, {2}, std::string("\x00\x3c\x00\xc0", 4)).numbers(), (Doubles{1, -2}));
  EXPECT_EQ(raw(ElementType::bf16, {2}, std::string("\x80\x3f\x00\xc0", 4)).numbers(), (Doubles{1, -2}));
  EXPECT_EQ(raw(ElementType::f64, {}, std::string("\x00\x00\x00\x00\x00\x00\xf0\x3f", 8)).scalar(), 1.0);
}

TEST(TensorData, ReadsPackedIntegers) {
  EXPECT_EQ(raw(ElementType::i4, {3}, "\xf1\x07").ints(), (Ints{1, -1, 7}));
  EXPECT_EQ(raw(ElementType::u4, {3}, "\xf1\x07").ints(), (Ints{1, 15, 7}));
  EXPECT_EQ(raw(ElementType::i2, {4}, "\xe4").ints(), (Ints{0, 1, -2, -1}));
  EXPECT_EQ(raw(ElementType::u2, {4}, "\xe4").ints(), (Ints{0, 1, 2, 3}));
}

TEST(TensorData, ReadsBooleansAndSigns) {
  EXPECT_EQ(raw(ElementType::boolean, {2}, std::string("\x00\x01", 2)).ints(), (Ints{0, 1}));
  EXPECT_EQ(raw(ElementType::i8, {1}, "\xff").ints(), (Ints{-1}));
  EXPECT_EQ(raw(ElementType::u8, {1}, "\xff").ints(), (Ints{255}));
  EXPECT_EQ(raw(ElementType::i16, {1}, "\xff\xff").ints(), (Ints{-1}));
}

TEST(TensorData, RefusesWhatItCannotSay) {
  EXPECT_FALSE(TensorData::from_floats({1, 2}).scalar());
  EXPECT_FALSE(TensorData::from_floats({1}).ints());
  EXPECT_FALSE(TensorData::from_strings({"a"}).numbers());
  EXPECT_FALSE(raw(ElementType::f8e4m3fn, {1}, "a").numbers());
  EXPECT_NE(error_of([] { (void)TensorData::from_numbers(ElementType::complex64, {1}, {1}); }), "");
  EXPECT_NE(error_of([] { (void)TensorData::from_numbers(ElementType::f32, {3}, {1}); }), "");
}

TEST(TensorData, RoundsAndSaturates) {
  EXPECT_EQ(TensorData::from_numbers(ElementType::i8, {4}, {2.5, 3.5, 1000, -1000}).ints(), (Ints{2, 4, 127, -128}));
  EXPECT_EQ(TensorData::scalar_of(ElementType::i64, 1e300).ints(), (Ints{INT64_MAX}));
  EXPECT_EQ(TensorData::scalar_of(ElementType::f16, 1.0 + 1.0 / 4096).scalar(), 1.0);  // half an ulp: to even
}

TEST(TensorData, CountsElementsWithin64Bits) {
  TensorData tensor;
  tensor.dims = {INT64_MAX, 2};
  EXPECT_NE(error_of([&] { (void)tensor.element_count(); }), "");
  tensor.dims = {INT64_MAX, 2, 0};
  EXPECT_EQ(tensor.element_count(), 0);
}

TEST(TensorData, NamesOfTypes) {
  EXPECT_EQ(parse_element_type("FLOAT"), ElementType::f32);
  EXPECT_EQ(parse_element_type("bf16"), ElementType::bf16);
  EXPECT_EQ(parse_element_type("half"), std::nullopt);
  EXPECT_EQ(to_string(static_cast<ElementType>(99)), "type 99");
  EXPECT_EQ(to_dtype(ElementType::f64), std::nullopt);
  EXPECT_EQ(to_dtype(ElementType::i8), DType::i8);
}

}  // namespace
}  // namespace graft::test

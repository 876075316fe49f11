// Tests that a walk over a tensor copies nothing: networks have hundreds of millions of elements, which are read for
// each sample.
#include <gtest/gtest.h>

#include <atomic>
#include <cmath>
#include <cstdlib>
#include <new>

#include "verify/compare/figures.hpp"
#include "verify/localize/emulate.hpp"

namespace {
std::atomic<std::size_t> allocated{0};  ///< Bytes allocated by this program.
}

[[gnu::noinline]] void* operator new(std::size_t size) {
  allocated += size;
  void* memory = std::malloc(size);
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}
[[gnu::noinline]] void operator delete(void* memory) noexcept { std::free(memory); }
[[gnu::noinline]] void operator delete(void* memory, std::size_t /*size*/) noexcept { std::free(memory); }

namespace graft::verify::walks_test {
namespace {

onnx::TensorData numbers(onnx::ElementType type) {
  constexpr std::size_t count = 200'001;
  std::vector<double> values(count);
  for (std::size_t i = 0; i < count; ++i) values[i] = std::sin(static_cast<double>(i));
  return onnx::TensorData::from_numbers(type, {static_cast<std::int64_t>(count)}, values);
}

class Walks : public testing::TestWithParam<onnx::ElementType> {};

TEST_P(Walks, CopyNothing) {
  const onnx::TensorData tensor = numbers(GetParam());
  const std::size_t before = allocated;
  const TensorRange range = range_of(tensor);
  const RoundingEffect f16 = rounding_effect(tensor, Precision::f16);
  const RoundingEffect int8 = rounding_effect(tensor, Precision::int8, 0.25);
  const TypeEffect effect = type_effect(tensor, Precision::bf16);
  EXPECT_EQ(allocated - before, 0);
  EXPECT_EQ(range.count, 200'001);
  EXPECT_EQ(effect.range.squares, range.squares);
  EXPECT_EQ(f16.overflow + int8.saturated, 0);
}

INSTANTIATE_TEST_SUITE_P(Types, Walks,
                         testing::Values(onnx::ElementType::f32, onnx::ElementType::f64, onnx::ElementType::f16,
                                         onnx::ElementType::bf16));

}  // namespace
}  // namespace graft::verify::walks_test

// Random problems for `graft bench --random`, whose sizes no kernel was tuned for.
//
// `TimedCase draw(const Definition&, Draw&)` in `<op>_cases.hpp` generates one random problem of an operator. The
// constants above that function are the ranges of its sizes. `graft bench --random` skips an operator without this
// function.
#pragma once

#include <array>
#include <cstdint>
#include <initializer_list>
#include <iterator>
#include <random>
#include <vector>

#include "ops/operator_case.hpp"

namespace graft::ops {

/// The integers from `least` to `most`, both included, that are multiples of `step`.
struct SizeRange {
  std::int64_t least = 1;
  std::int64_t most = 1;
  std::int64_t step = 1;

  [[nodiscard]] constexpr bool has(std::int64_t value) const {
    return value >= least && value <= most && value % step == 0;
  }
};

/// The range of the number of elements of a random first input, from tensors whose kernels take little longer than a
/// launch to tensors many times as large as the L2 cache.
inline constexpr SizeRange drawn_elements{1 << 15, 1 << 25};

/// The types in which PyTorch has the same operations.
inline constexpr std::array drawn_dtypes{DType::f32, DType::f16, DType::bf16};

/// A source of random choices. Equal seeds yield equal sequences of choices.
class Draw {
 public:
  explicit Draw(std::uint64_t seed) : engine_(seed) {}

  /// Returns a random integer of the range, whose logarithm is uniformly distributed.
  [[nodiscard]] std::int64_t size(const SizeRange& range);
  /// Returns a random integer of the range; all integers are equally likely.
  [[nodiscard]] std::int64_t integer(const SizeRange& range);
  [[nodiscard]] bool chance(int percent) { return integer({1, 100}) <= percent; }
  template <class List>
  [[nodiscard]] auto one_of(const List& list) {
    return list[static_cast<std::size_t>(integer({0, static_cast<std::int64_t>(std::size(list)) - 1}))];
  }
  template <class T>
  [[nodiscard]] T one_of(std::initializer_list<T> list) {
    return one_of(std::vector<T>(list));
  }
  /// Calls `make` until it returns a shape whose number of elements lies in the range, and returns that shape.
  template <class Make>
  [[nodiscard]] Extents shape(const Make& make, const SizeRange& elements = drawn_elements) {
    while (true) {
      const Extents extents = make();
      if (elements.has(extents.element_count())) return extents;
    }
  }

 private:
  std::mt19937_64 engine_;
};

[[nodiscard]] Extents extents_of(const std::vector<std::int64_t>& sizes);

/// Returns a random number of channels between `least` and `most`; three of four numbers are multiples of 8, as in most
/// networks.
[[nodiscard]] std::int64_t draw_channels(Draw& draw, std::int64_t least, std::int64_t most);

/// Returns up to `count` distinct problems of an operator, drawn by `draw` from the random sequence of `seed`, all of
/// them valid and in types that PyTorch has.
[[nodiscard]] std::vector<TimedCase> random_cases(const OperatorType& type, DrawCase draw, std::uint64_t seed,
                                                  int count);

}  // namespace graft::ops

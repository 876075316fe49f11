// Random problems for `graft bench --random`: sizes that no kernel was tuned for.
//
// `TimedCase draw(const Definition&, Draw&)` in `<op>_cases.hpp` makes one problem of an operator. The ranges that it
// draws from are the constants in front of it. An operator without this function is not drawn.
#pragma once

#include <array>
#include <cstdint>
#include <initializer_list>
#include <iterator>
#include <random>
#include <vector>

#include "ops/operator_case.hpp"

namespace graft::ops {

/// Integers from `least` to `most`, both included, that are multiples of `step`.
struct SizeRange {
  std::int64_t least = 1;
  std::int64_t most = 1;
  std::int64_t step = 1;

  [[nodiscard]] constexpr bool has(std::int64_t value) const {
    return value >= least && value <= most && value % step == 0;
  }
};

/// Elements of the first input: from what takes little more than a launch to what is many times the L2 cache.
inline constexpr SizeRange drawn_elements{1 << 15, 1 << 25};

/// The types that PyTorch has the same operations for.
inline constexpr std::array drawn_dtypes{DType::f32, DType::f16, DType::bf16};

/// A sequence of random choices, the same for the same seed.
class Draw {
 public:
  explicit Draw(std::uint64_t seed) : engine_(seed) {}

  /// An integer of the range; its logarithm is uniformly distributed.
  [[nodiscard]] std::int64_t size(const SizeRange& range);
  /// An integer of the range, all equally likely.
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
  /// The shapes that `make` draws, again and again until one has a number of elements within the range.
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

/// Channels of networks: three of four are multiples of 8.
[[nodiscard]] std::int64_t draw_channels(Draw& draw, std::int64_t least, std::int64_t most);

/// So many different problems of an operator, which are valid and have PyTorch's types.
[[nodiscard]] std::vector<TimedCase> random_cases(const OperatorType& type, DrawCase draw, std::uint64_t seed,
                                                  int count);

}  // namespace graft::ops

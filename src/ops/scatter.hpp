// What ScatterReduceND and ScatterReduceElements share: their reductions, and a problem as slices that go into rows.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "graft/define_operator.hpp"
#include "graft/elementwise.hpp"
#include "ops/workspace_parts.hpp"

namespace graft::ops {

enum class ScatterReduction : std::uint8_t { add, mul, min, max };
constexpr std::array<Choice<ScatterReduction>, 4> choices(ScatterReduction /*tag*/) {
  return {{{"add", ScatterReduction::add},
           {"mul", ScatterReduction::mul},
           {"min", ScatterReduction::min},
           {"max", ScatterReduction::max}}};
}

constexpr auto scatter_type_constraints() {
  using enum DType;
  return std::array{TypeConstraint("T", f32, f16, bf16, i32, i64), TypeConstraint("Tind", i64, i32)};
}

/// What an element becomes by an update. Integers wrap around; min and max of NaN, and of two zeros, are the update, as
/// in ONNX Runtime.
template <class T>
GRAFT_HOST_DEVICE T reduced(ScatterReduction reduction, T element, T update) {
  using Number = typename std::conditional_t<std::is_integral_v<T>, std::make_unsigned<T>, std::type_identity<T>>::type;
  switch (reduction) {
    case ScatterReduction::add: return static_cast<T>(static_cast<Number>(element) + static_cast<Number>(update));
    case ScatterReduction::mul: return static_cast<T>(static_cast<Number>(element) * static_cast<Number>(update));
    case ScatterReduction::min: return element < update ? element : update;
    case ScatterReduction::max: return element > update ? element : update;
  }
  return element;
}

/// Update i, `slice` elements one after another, goes into one of `rows` rows of as many elements.
struct ScatterSizes {
  std::int64_t rows = 0;
  std::int64_t slice = 1;
  std::int64_t updates = 0;
};

/// Whether there are so many wide slices that to sort them and read them in order takes less time than atomics do. On
/// an H200 memory adds 1.5 TB/s of f32 and half of that of i64, while what is sorted is read at twice the speed:
/// 372 us against 248 us for a million slices of 128 in f32, 152 us against 132 us for half a million of 256 in f16.
[[nodiscard]] constexpr bool is_faster_in_order(DType dtype, const ScatterSizes& sizes) {
  constexpr std::int64_t wide_bytes = 512;
  const std::int64_t many = std::int64_t{1} << (dtype == DType::i64 ? 24 : 26);
  return sizes.slice * static_cast<std::int64_t>(size_of(dtype)) >= wide_bytes && sizes.updates >= many / sizes.slice;
}

/// Whether updates are reduced by atomics whatever kernel is asked for, as their order changes nothing or may be any:
/// without a workspace.
[[nodiscard]] constexpr bool is_always_atomic(ScatterReduction reduction, bool deterministic, DType dtype,
                                              const ScatterSizes& sizes) {
  if (reduction == ScatterReduction::mul || is_faster_in_order(dtype, sizes)) return false;
  if (!is_floating_point(dtype)) return true;
  return reduction == ScatterReduction::add && !deterministic && dtype != DType::f32;
}

/// Whether the extremes of floating-point numbers are found by atomics: the shorter the slices, the more it takes to
/// sort them. On an H200 6.4 million single elements take 334 us in order.
inline constexpr std::int64_t most_atomic_extremes = 3;
[[nodiscard]] constexpr bool has_extremes(ScatterReduction reduction, DType dtype) {
  return is_floating_point(dtype) && (reduction == ScatterReduction::min || reduction == ScatterReduction::max);
}
[[nodiscard]] constexpr bool has_atomic_extremes(ScatterReduction reduction, DType dtype, const ScatterSizes& sizes) {
  return has_extremes(reduction, dtype) && sizes.slice <= most_atomic_extremes;
}

/// Byte offsets in the workspace of the CUDA kernels that reduce in order.
struct ScatterPlan : WorkspaceParts {
  explicit ScatterPlan(const ScatterSizes& sizes) {
    for (std::int64_t& each : targets) each = add(sizes.updates * 4);
    for (std::int64_t& each : order) each = add(sizes.updates * 4);
    runs = add(sizes.rows * 8);
    sort_bytes = least_sort_bytes + sizes.updates;
    sort = add(sort_bytes);
  }

  std::int64_t targets[2] = {};  ///< The row of each update, and where they are sorted.
  std::int64_t order[2] = {};    ///< The number of each update, and where they are sorted.
  std::int64_t runs = 0;         ///< Where the updates of each row begin and end.
  std::int64_t sort = 0;
  std::int64_t sort_bytes = 0;  ///< More than CUB's radix sort asks for: 1024 bytes for each 2304 updates or more.

 private:
  static constexpr std::int64_t least_sort_bytes = 64 << 10;
};

/// Byte offsets in the workspace of the CUDA kernels that find extremes of floating-point numbers by atomics.
struct ExtremesPlan : WorkspaceParts {
  explicit ExtremesPlan(const ScatterSizes& sizes) {
    const std::int64_t elements = sizes.rows * std::min(sizes.slice, most_atomic_extremes);
    state = add(state_words * 4);
    last_nan = add(elements * 4);
    best = add(elements * 8);
  }

  static constexpr int state_words = 8;
  std::int64_t state = 0;
  std::int64_t last_nan = 0;  ///< Of each element of y: 1 + the number of the last update that is NaN.
  std::int64_t best = 0;      ///< Of each element of y: the extreme of the updates after it, and the last of its zeros.
};

/// Bytes of the workspace of whichever kernel is asked for, and no fewer than those of smaller sizes.
[[nodiscard]] inline std::size_t scatter_workspace(ScatterReduction reduction, bool deterministic, DType dtype,
                                                   const ScatterSizes& sizes) {
  if (is_always_atomic(reduction, deterministic, dtype, sizes)) return 0;
  const std::int64_t in_order = ScatterPlan(sizes).bytes;
  if (!has_extremes(reduction, dtype)) return static_cast<std::size_t>(in_order);
  return static_cast<std::size_t>(std::max(in_order, ExtremesPlan(sizes).bytes));
}

/// The index counted from the front; -1 for one that is out of range.
[[nodiscard]] GRAFT_HOST_DEVICE inline std::int64_t index_from_front(std::int64_t index, std::int64_t size) {
  if (index < 0) index += size;
  return index >= 0 && index < size ? index : -1;
}

/// Calls `f` with the address of the indices as a pointer to their type.
template <class F>
[[nodiscard]] Status dispatch_indices(DType dtype, const void* indices, F&& f) {
  if (dtype == DType::i32) return f(static_cast<const std::int32_t*>(indices));
  return f(static_cast<const std::int64_t*>(indices));
}

}  // namespace graft::ops

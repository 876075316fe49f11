// The reductions of ScatterReduceND and ScatterReduceElements, and their problems as slices that are added to rows.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "core/workspace_parts.hpp"
#include "graft/operator/define_operator.hpp"
#include "graft/operator/elementwise.hpp"

namespace graft {

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

/// Returns the reduction of an element and an update. Integers wrap around. min and max return the update if either
/// number is NaN or both are zeros, as ONNX Runtime does.
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

/// The sizes of a problem: each of `updates` updates is a slice of `slice` contiguous elements, which is reduced into
/// one of `rows` rows of `slice` elements.
struct ScatterSizes {
  std::int64_t rows = 0;
  std::int64_t slice = 1;
  std::int64_t updates = 0;
};

/// Returns whether sorting the updates and reducing them in order is faster than atomics, which is the case for many
/// wide slices. On an H200, atomics add 1.5 TB/s of f32 and half as much of i64, while sorted slices are read at twice
/// that speed: 372 us with atomics against 248 us in order for a million slices of 128 in f32, 152 us against 132 us
/// for half a million slices of 256 in f16.
[[nodiscard]] constexpr bool is_faster_in_order(DType dtype, const ScatterSizes& sizes) {
  constexpr std::int64_t wide_bytes = 512;
  const std::int64_t many = std::int64_t{1} << (dtype == DType::i64 ? 24 : 26);
  return sizes.slice * static_cast<std::int64_t>(size_of(dtype)) >= wide_bytes && sizes.updates >= many / sizes.slice;
}

/// Returns whether every kernel reduces the updates with atomics. This is the case if the order of the updates does not
/// change the result, or if it changes only rounding and `deterministic` is false, unless is_faster_in_order() is true.
/// Such problems need no workspace.
[[nodiscard]] constexpr bool is_always_atomic(ScatterReduction reduction, bool deterministic, DType dtype,
                                              const ScatterSizes& sizes) {
  if (reduction == ScatterReduction::mul || is_faster_in_order(dtype, sizes)) return false;
  if (!is_floating_point(dtype)) return true;
  return reduction == ScatterReduction::add && !deterministic && dtype != DType::f32;
}

/// The longest slice whose floating-point minimum or maximum is found with atomics. The shorter the slices, the more of
/// the time is spent on sorting: on an H200, 6.4 million single elements take 334 us in order.
inline constexpr std::int64_t most_atomic_extremes = 3;
[[nodiscard]] constexpr bool has_extremes(ScatterReduction reduction, DType dtype) {
  return is_floating_point(dtype) && (reduction == ScatterReduction::min || reduction == ScatterReduction::max);
}
[[nodiscard]] constexpr bool has_atomic_extremes(ScatterReduction reduction, DType dtype, const ScatterSizes& sizes) {
  return has_extremes(reduction, dtype) && sizes.slice <= most_atomic_extremes;
}

/// Byte offsets in the workspace of the CUDA kernels that reduce the updates in order.
struct ScatterPlan : WorkspaceParts {
  explicit ScatterPlan(const ScatterSizes& sizes) {
    for (std::int64_t& each : targets) each = add(sizes.updates * 4);
    for (std::int64_t& each : order) each = add(sizes.updates * 4);
    runs = add(sizes.rows * 8);
    sort_bytes = least_sort_bytes + sizes.updates;
    sort = add(sort_bytes);
  }

  std::int64_t targets[2] = {};  ///< The row of each update, before and after sorting.
  std::int64_t order[2] = {};    ///< The index of each update, before and after sorting.
  std::int64_t runs = 0;         ///< The begin and the end of each row's updates in the sorted order.
  std::int64_t sort = 0;
  /// The bytes of scratch memory for CUB's radix sort. This is more than CUB needs, which is 1024 bytes for each group
  /// of at least 2304 updates.
  std::int64_t sort_bytes = 0;

 private:
  static constexpr std::int64_t least_sort_bytes = 64 << 10;
};

/// Byte offsets in the workspace of the CUDA kernels that find floating-point minima and maxima by atomics.
struct ExtremesPlan : WorkspaceParts {
  explicit ExtremesPlan(const ScatterSizes& sizes) {
    const std::int64_t elements = sizes.rows * std::min(sizes.slice, most_atomic_extremes);
    state = add(state_words * 4);
    last_nan = add(elements * 4);
    best = add(elements * 8);
  }

  static constexpr int state_words = 8;
  std::int64_t state = 0;
  std::int64_t last_nan = 0;  ///< 1 + the index of the last update of an element of y that is NaN.
  /// The offset of an array with one 64-bit word for each element of y: the largest of the words of the element's
  /// updates after the last NaN. The upper 32 bits of a word order the updates by value, so that the largest word has
  /// the minimum or maximum; the lower 32 bits order zeros by position and contain their sign.
  std::int64_t best = 0;
};

/// Returns the size of the workspace in bytes. It is sufficient for every kernel that may be selected and for all
/// smaller problems.
[[nodiscard]] inline std::size_t scatter_workspace(ScatterReduction reduction, bool deterministic, DType dtype,
                                                   const ScatterSizes& sizes) {
  if (is_always_atomic(reduction, deterministic, dtype, sizes)) return 0;
  const std::int64_t in_order = ScatterPlan(sizes).bytes;
  if (!has_extremes(reduction, dtype)) return static_cast<std::size_t>(in_order);
  return static_cast<std::size_t>(std::max(in_order, ExtremesPlan(sizes).bytes));
}

/// Returns the index counted from the front, or -1 if it is out of range. A negative index counts from the end.
[[nodiscard]] GRAFT_HOST_DEVICE inline std::int64_t index_from_front(std::int64_t index, std::int64_t size) {
  if (index < 0) index += size;
  return index >= 0 && index < size ? index : -1;
}

/// Calls `f` with the indices as a pointer to their element type.
template <class F>
[[nodiscard]] Status dispatch_indices(DType dtype, const void* indices, F&& f) {
  if (dtype == DType::i32) return f(static_cast<const std::int32_t*>(indices));
  return f(static_cast<const std::int64_t*>(indices));
}

}  // namespace graft

// What ScatterReduceND and ScatterReduceElements share: their reductions, and a problem as slices that go into rows.
#pragma once

#include <array>
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

/// Whether updates are reduced by atomics at any size, as their order changes nothing or may be any: without a
/// workspace.
[[nodiscard]] constexpr bool is_always_atomic(ScatterReduction reduction, bool deterministic, DType dtype) {
  if (reduction == ScatterReduction::mul) return false;
  if (!is_floating_point(dtype)) return true;
  return reduction == ScatterReduction::add && !deterministic && dtype != DType::f32;
}

/// Update i, `slice` elements one after another, goes into one of `rows` rows of as many elements.
struct ScatterSizes {
  std::int64_t rows = 0;
  std::int64_t slice = 1;
  std::int64_t updates = 0;
};

/// Byte offsets in the workspace of the CUDA kernels.
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

// CUDA kernels of LargestK. Elements become unsigned integers that rise as the elements are to come, so that CUB's
// stable radix sort keeps of equal ones the first in front; the places of the first k are the indices. All of the GPU
// sorts the elements of a few rows as one, and then by their rows; many rows are sorted by a block each.
#include <cub/device/device_radix_sort.cuh>
#include <cub/device/device_segmented_radix_sort.cuh>

#include "kernels/launch.cuh"
#include "kernels/numbers.cuh"
#include "kernels/sort.cuh"
#include "kernels/vector.cuh"
#include "ops/largest_k/plan.hpp"

namespace graft::ops {
namespace {

constexpr int sort_threads = 256;
constexpr std::int64_t most_elements = 0x7FFFFFFF;

template <class T>
struct KeyOf;
template <>
struct KeyOf<float> {
  using Type = std::uint32_t;
};
template <>
struct KeyOf<__half> {
  using Type = std::uint16_t;
};
template <>
struct KeyOf<__nv_bfloat16> {
  using Type = std::uint16_t;
};
template <>
struct KeyOf<std::int32_t> {
  using Type = std::uint32_t;
};
template <>
struct KeyOf<std::int64_t> {
  using Type = std::uint64_t;
};

/// Rises as elements do. Both zeros have the same key, and NaN the largest.
template <class T>
__device__ typename KeyOf<T>::Type rising_key(T element) {
  using Key = typename KeyOf<T>::Type;
  constexpr Key sign = static_cast<Key>(Key{1} << (8 * sizeof(Key) - 1));
  if constexpr (std::is_integral_v<T>) {
    return static_cast<Key>(element) ^ sign;
  } else {
    const auto number = static_cast<float>(element);
    if (number != number) return static_cast<Key>(~Key{0});
    if (number == 0.F) return sign;
    const Key bits = *reinterpret_cast<const Key*>(&element);
    return static_cast<Key>((bits & sign) != 0 ? ~bits : bits | sign);
  }
}

/// LargestRows of a problem of less than 2^31 elements, whose division takes a fifth of the time of 64 bits.
struct RowSizes {
  unsigned rows;
  unsigned stride;
  unsigned length;
  unsigned kept;
};

/// A place is that of the element in all rows, one row after another.
template <class T>
__global__ void make_keys(const T* x, typename KeyOf<T>::Type* keys, int* places, RowSizes sizes, bool largest) {
  using Key = typename KeyOf<T>::Type;
  const unsigned index = blockIdx.x * sort_threads + threadIdx.x;
  if (index >= sizes.rows * sizes.length) return;
  const unsigned row = index / sizes.length;
  const unsigned place = index - row * sizes.length;
  const unsigned outer = row / sizes.stride;
  const Key key = rising_key(x[(outer * sizes.length + place) * sizes.stride + row - outer * sizes.stride]);
  keys[index] = largest ? static_cast<Key>(~key) : key;
  places[index] = static_cast<int>(index);
}

__global__ void make_offsets(int* offsets, RowSizes sizes) {
  const unsigned row = blockIdx.x * sort_threads + threadIdx.x;
  if (row <= sizes.rows) offsets[row] = static_cast<int>(row * sizes.length);
}

/// The row of each place, as a key.
__global__ void make_row_keys(const int* places, std::uint8_t* keys, RowSizes sizes) {
  const unsigned index = blockIdx.x * sort_threads + threadIdx.x;
  if (index >= sizes.rows * sizes.length) return;
  keys[index] = static_cast<std::uint8_t>(static_cast<unsigned>(places[index]) / sizes.length);
}

/// In the order of the results.
template <class T>
__global__ void take_first(const T* x, const int* places, T* values, std::int64_t* indices, RowSizes sizes) {
  const unsigned index = blockIdx.x * sort_threads + threadIdx.x;
  if (index >= sizes.rows * sizes.kept) return;
  const unsigned of_all_rows = index / sizes.stride;
  const unsigned inner = index - of_all_rows * sizes.stride;
  const unsigned outer = of_all_rows / sizes.kept;
  const unsigned rank = of_all_rows - outer * sizes.kept;
  const unsigned row_begin = (outer * sizes.stride + inner) * sizes.length;
  const unsigned place = static_cast<unsigned>(places[row_begin + rank]) - row_begin;
  values[index] = x[(outer * sizes.length + place) * sizes.stride + inner];
  indices[index] = place;
}

Status fits_sort(const LargestK& op, const Problem& problem) {
  const LargestRows rows(op, problem);
  if (rows.length == 0 || rows.rows <= most_elements / rows.length) return {};
  return unsupported(std::to_string(rows.rows) + " rows of " + std::to_string(rows.length) +
                     " elements, allowed are 2147483647 elements");
}

template <class Element>
cub::DoubleBuffer<Element> both_of(std::byte* workspace, const std::int64_t (&at)[2]) {
  return cub::DoubleBuffer<Element>(reinterpret_cast<Element*>(workspace + at[0]),
                                    reinterpret_cast<Element*>(workspace + at[1]));
}

template <class Key>
Status sort_all_by(cub::DoubleBuffer<Key>& keys, cub::DoubleBuffer<int>& places, int count, const LargestPlan& plan,
                   std::byte* workspace, const CudaContext& context) {
  const auto sort = [&](void* memory, std::size_t& bytes) {
    return cub::DeviceRadixSort::SortPairs(memory, bytes, keys, places, count, 0, 8 * static_cast<int>(sizeof(Key)),
                                           context.stream);
  };
  return sort_within(LargestK::name, sort, workspace + plan.sort, plan.sort_bytes);
}

/// The places in the order of their keys; `sorted` is where they are then.
template <class Key>
Status sort_rows(const LargestRows& rows, const RowSizes& sizes, const LargestPlan& plan, std::byte* workspace,
                 const int*& sorted, const CudaContext& context) {
  constexpr std::int64_t enough_for_a_block_each = 128;
  const auto count = static_cast<int>(rows.rows * rows.length);
  auto keys = both_of<Key>(workspace, plan.keys);
  auto places = both_of<int>(workspace, plan.places);
  if (rows.rows < enough_for_a_block_each) {
    if (Status status = sort_all_by(keys, places, count, plan, workspace, context); !status.ok()) return status;
    if (rows.rows > 1) {
      auto row_keys = both_of<std::uint8_t>(workspace, plan.keys);
      if (Status made = launch(LargestK::name, make_row_keys, {ceil_divide(count, sort_threads), sort_threads}, context,
                               places.Current(), row_keys.Current(), sizes);
          !made.ok()) {
        return made;
      }
      if (Status status = sort_all_by(row_keys, places, count, plan, workspace, context); !status.ok()) return status;
    }
    sorted = places.Current();
    return {};
  }
  auto* offsets = reinterpret_cast<int*>(workspace + plan.offsets);
  if (Status made = launch(LargestK::name, make_offsets, {ceil_divide(rows.rows + 1, sort_threads), sort_threads},
                           context, offsets, sizes);
      !made.ok()) {
    return made;
  }
  const auto sort = [&](void* memory, std::size_t& bytes) {
    return cub::DeviceSegmentedRadixSort::SortPairs(memory, bytes, keys, places, count, static_cast<int>(rows.rows),
                                                    offsets, offsets + 1, 0, static_cast<int>(8 * sizeof(Key)),
                                                    context.stream);
  };
  Status status = sort_within(LargestK::name, sort, workspace + plan.sort, plan.sort_bytes);
  sorted = places.Current();
  return status;
}

Status run_sort(const LargestK& op, const Problem& problem, const Buffers& buffers, const CudaContext& context) {
  const LargestRows rows(op, problem);
  const LargestPlan plan(rows, problem.inputs[0].dtype);
  if (rows.rows == 0 || rows.kept == 0) return {};
  const RowSizes sizes{static_cast<unsigned>(rows.rows), static_cast<unsigned>(rows.stride),
                       static_cast<unsigned>(rows.length), static_cast<unsigned>(rows.kept)};
  auto* workspace = static_cast<std::byte*>(buffers.workspace);
  return dispatch_numbers(problem.inputs[0].dtype, [&](auto element) -> Status {
    using T = decltype(element);
    using Key = typename KeyOf<T>::Type;
    const auto* x = static_cast<const T*>(buffers.inputs[0]);
    if (Status made =
            launch(LargestK::name, make_keys<T>, {ceil_divide(rows.rows * rows.length, sort_threads), sort_threads},
                   context, x, reinterpret_cast<Key*>(workspace + plan.keys[0]),
                   reinterpret_cast<int*>(workspace + plan.places[0]), sizes, op.largest);
        !made.ok()) {
      return made;
    }
    const int* sorted = nullptr;
    if (Status status = sort_rows<Key>(rows, sizes, plan, workspace, sorted, context); !status.ok()) return status;
    return launch(LargestK::name, take_first<T>, {ceil_divide(rows.rows * rows.kept, sort_threads), sort_threads},
                  context, x, sorted, static_cast<T*>(buffers.outputs[0]),
                  static_cast<std::int64_t*>(buffers.outputs[1]), sizes);
  });
}

}  // namespace

std::span<const Variant<LargestK>> cuda_kernels(const LargestK& /*op*/) {
  static constexpr std::array variants{Variant<LargestK>{"sort", fits_sort, run_sort}};
  return variants;
}

}  // namespace graft::ops

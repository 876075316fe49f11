// CUDA kernels of LargestK. Elements are mapped to unsigned keys whose ascending order is the order of the results.
// CUB's radix sort is stable, so among equal elements the first one stays first. The indices of the results are the
// sorted positions.
//
// Few rows are sorted by the whole GPU as one sequence, and then by their row; many rows are sorted by one block each.
// If few elements of long rows are kept, those elements are selected first, digit by digit of the key of the last kept
// element, and only they are sorted.
#include <cub/device/device_radix_sort.cuh>
#include <cub/device/device_segmented_radix_sort.cuh>

#include "kernels/launch.cuh"
#include "kernels/numbers.cuh"
#include "kernels/scan.cuh"
#include "kernels/sort.cuh"
#include "kernels/vector.cuh"
#include "ops/largest_k/plan.hpp"

namespace graft::ops {
namespace {

constexpr int sort_threads = 256;
constexpr int sort_warps = sort_threads / 32;
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

/// Returns a key that increases with the element. Both zeros have the same key, and NaN has the largest key.
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

/// The sizes of LargestRows for problems of less than 2^31 elements: 32-bit division takes a fifth of the time of
/// 64-bit division.
struct RowSizes {
  unsigned rows;
  unsigned stride;
  unsigned length;
  unsigned kept;
  unsigned sorted;  ///< The number of elements of a row that are sorted: all of them, or only the kept ones.
};

/// Returns the key of an element. Keys increase in the order of the results.
template <class T>
__device__ typename KeyOf<T>::Type key_at(const T* x, const RowSizes& sizes, unsigned row, unsigned place,
                                          bool largest) {
  using Key = typename KeyOf<T>::Type;
  const unsigned outer = row / sizes.stride;
  const Key key = rising_key(x[(outer * sizes.length + place) * sizes.stride + row - outer * sizes.stride]);
  return largest ? static_cast<Key>(~key) : key;
}

/// Writes the keys of all elements and their positions, counted over all rows.
template <class T>
__global__ void make_keys(const T* x, typename KeyOf<T>::Type* keys, int* places, RowSizes sizes, bool largest) {
  const unsigned index = blockIdx.x * sort_threads + threadIdx.x;
  if (index >= sizes.rows * sizes.length) return;
  const unsigned row = index / sizes.length;
  keys[index] = key_at(x, sizes, row, index - row * sizes.length, largest);
  places[index] = static_cast<int>(index);
}

/// Returns the state of a row after a pass, computed from the histogram of that pass: the digit of the last kept
/// element is the one at which the running count reaches the number of kept elements.
__device__ SelectState next_state(const unsigned* histogram, const SelectState& state) {
  constexpr int own = select_digits / sort_threads;
  __shared__ SelectState found;
  unsigned counts[own];
  unsigned sum = 0;
#pragma unroll
  for (int i = 0; i < own; ++i) {
    counts[i] = histogram[threadIdx.x * own + i];
    sum += counts[i];
  }
  std::int64_t before = block_sums<sort_warps>(sum).before;
#pragma unroll
  for (int i = 0; i < own; ++i) {
    if (before < state.rest && state.rest <= before + counts[i]) {
      found = {state.prefix << select_digit_bits | (threadIdx.x * own + static_cast<unsigned>(i)), state.rest - before};
    }
    before += counts[i];
  }
  __syncthreads();
  return found;
}

/// A tile of a row: up to select_tile elements that one block reads.
struct SelectTile {
  unsigned row;
  unsigned number;
  unsigned first;
  unsigned end;
};
__device__ SelectTile select_tile_of_block(const RowSizes& sizes) {
  const unsigned tiles = select_tiles(sizes.length);
  const unsigned row = blockIdx.x / tiles;
  const unsigned number = blockIdx.x - row * tiles;
  return {row, number, number * select_tile, ::min((number + 1) * select_tile, sizes.length)};
}

/// The buffers that the kernels of a selection share.
struct Selection {
  unsigned* histograms;
  SelectState* states;
  uint2* tile_counts;
  int passes;

  [[nodiscard]] __device__ unsigned* histogram(unsigned row, int pass) const {
    return histograms + (row * static_cast<unsigned>(passes) + static_cast<unsigned>(pass)) * select_digits;
  }
  [[nodiscard]] __device__ unsigned first_state(unsigned row) const { return row * static_cast<unsigned>(passes + 1); }
  /// Returns the state of a row, of which `kept` elements are kept, before `pass`, computed from the histogram of the
  /// previous pass. All blocks compute it; the block of the row's first tile stores it for the next pass.
  [[nodiscard]] __device__ SelectState state(unsigned row, int pass, unsigned kept, bool is_first_tile) const {
    if (pass == 0) return {0, static_cast<std::int64_t>(kept)};
    SelectState* const of_row = states + first_state(row);
    const SelectState before = pass == 1 ? SelectState{0, static_cast<std::int64_t>(kept)} : of_row[pass - 1];
    const SelectState now = next_state(histogram(row, pass - 1), before);
    if (is_first_tile && threadIdx.x == 0) of_row[pass] = now;
    return now;
  }
  /// Returns the state after all passes. Requires that an earlier launch has computed it.
  [[nodiscard]] __device__ SelectState last_state(unsigned row) const {
    return states[first_state(row) + static_cast<unsigned>(passes)];
  }
};

/// Returns the first `digits` digits of a key. If the key has too few bits, the last digit is padded with zeros.
template <class Key>
__device__ std::uint64_t key_prefix(Key key, int digits) {
  const int shift = static_cast<int>(8 * sizeof(Key)) - digits * select_digit_bits;
  return shift >= 0 ? static_cast<std::uint64_t>(key) >> shift : static_cast<std::uint64_t>(key) << -shift;
}

/// Adds the digits of the elements that share the row's prefix to the histogram of this pass.
template <class T>
__global__ void count_digits(const T* x, const Selection selection, RowSizes sizes, int pass, bool largest) {
  __shared__ unsigned counts[select_digits];
  for (int i = static_cast<int>(threadIdx.x); i < select_digits; i += sort_threads) counts[i] = 0;
  const SelectTile tile = select_tile_of_block(sizes);
  const SelectState state = selection.state(tile.row, pass, sizes.kept, tile.number == 0);
  __syncthreads();
  for (unsigned place = tile.first + threadIdx.x; place < tile.end; place += sort_threads) {
    const std::uint64_t prefix = key_prefix(key_at(x, sizes, tile.row, place, largest), pass + 1);
    if (prefix >> select_digit_bits == state.prefix) atomicAdd(counts + prefix % select_digits, 1U);
  }
  __syncthreads();
  unsigned* const histogram = selection.histogram(tile.row, pass);
  for (int i = static_cast<int>(threadIdx.x); i < select_digits; i += sort_threads) {
    if (counts[i] != 0) atomicAdd(histogram + i, counts[i]);
  }
}

/// Counts, in each tile, the elements whose key is smaller than the last kept element's, and those with an equal key.
template <class T>
__global__ void count_selected(const T* x, const Selection selection, RowSizes sizes, bool largest) {
  const SelectTile tile = select_tile_of_block(sizes);
  const SelectState last = selection.state(tile.row, selection.passes, sizes.kept, tile.number == 0);
  unsigned front = 0;
  unsigned like = 0;
  for (unsigned place = tile.first + threadIdx.x; place < tile.end; place += sort_threads) {
    const std::uint64_t prefix = key_prefix(key_at(x, sizes, tile.row, place, largest), selection.passes);
    front += prefix < last.prefix ? 1U : 0U;
    like += prefix == last.prefix ? 1U : 0U;
  }
  const unsigned all_front = block_sums<sort_warps>(front).all;
  const unsigned all_like = block_sums<sort_warps>(like).all;
  if (threadIdx.x == 0) selection.tile_counts[blockIdx.x] = {all_front, all_like};
}

/// Writes the keys and positions of the kept elements in the order of their positions. Of the elements whose key equals
/// the last kept element's, the first ones are kept.
template <class T>
__global__ void take_selected(const T* x, const Selection selection, typename KeyOf<T>::Type* keys, int* places,
                              RowSizes sizes, bool largest) {
  constexpr unsigned own = select_tile / sort_threads;
  const SelectTile tile = select_tile_of_block(sizes);
  const SelectState last = selection.last_state(tile.row);
  unsigned before_front = 0;
  unsigned before_like = 0;
  for (unsigned i = threadIdx.x; i < tile.number; i += sort_threads) {
    const uint2 counts = selection.tile_counts[blockIdx.x - tile.number + i];
    before_front += counts.x;
    before_like += counts.y;
  }
  const unsigned front_before_tile = block_sums<sort_warps>(before_front).all;
  const unsigned like_before_tile = block_sums<sort_warps>(before_like).all;

  const unsigned first = tile.first + threadIdx.x * own;
  typename KeyOf<T>::Type own_keys[own] = {};
  unsigned is_front = 0;  // One bit for each element.
  unsigned is_like = 0;
#pragma unroll
  for (unsigned i = 0; i < own; ++i) {
    if (first + i >= tile.end) continue;
    own_keys[i] = key_at(x, sizes, tile.row, first + i, largest);
    const std::uint64_t prefix = key_prefix(own_keys[i], selection.passes);
    is_front |= (prefix < last.prefix ? 1U : 0U) << i;
    is_like |= (prefix == last.prefix ? 1U : 0U) << i;
  }
  unsigned front = front_before_tile + block_sums<sort_warps>(static_cast<unsigned>(__popc(is_front))).before;
  unsigned like = like_before_tile + block_sums<sort_warps>(static_cast<unsigned>(__popc(is_like))).before;
  const auto kept_like = static_cast<unsigned>(last.rest);
#pragma unroll
  for (unsigned i = 0; i < own; ++i) {
    const bool in_front = (is_front >> i & 1U) != 0;
    const bool alike = (is_like >> i & 1U) != 0;
    if (in_front || (alike && like < kept_like)) {
      const unsigned at = tile.row * sizes.kept + front + ::min(like, kept_like);
      keys[at] = own_keys[i];
      places[at] = static_cast<int>(tile.row * sizes.length + first + i);
    }
    front += in_front ? 1U : 0U;
    like += alike ? 1U : 0U;
  }
}

__global__ void make_offsets(int* offsets, RowSizes sizes) {
  const unsigned row = blockIdx.x * sort_threads + threadIdx.x;
  if (row <= sizes.rows) offsets[row] = static_cast<int>(row * sizes.sorted);
}

/// Writes the row of each position in `places` as a sort key. The keys have 16 bits, a type for which the sort is
/// compiled anyway, because keys of 8 bits would need another instantiation of CUB's sort.
__global__ void make_row_keys(const int* places, std::uint16_t* keys, RowSizes sizes) {
  const unsigned index = blockIdx.x * sort_threads + threadIdx.x;
  if (index >= sizes.rows * sizes.sorted) return;
  keys[index] = static_cast<std::uint16_t>(static_cast<unsigned>(places[index]) / sizes.length);
}

/// Writes the values and indices of the results.
template <class T>
__global__ void take_first(const T* x, const int* places, T* values, std::int64_t* indices, RowSizes sizes) {
  const unsigned index = blockIdx.x * sort_threads + threadIdx.x;
  if (index >= sizes.rows * sizes.kept) return;
  const unsigned of_all_rows = index / sizes.stride;
  const unsigned inner = index - of_all_rows * sizes.stride;
  const unsigned outer = of_all_rows / sizes.kept;
  const unsigned rank = of_all_rows - outer * sizes.kept;
  const unsigned row = outer * sizes.stride + inner;
  const unsigned place = static_cast<unsigned>(places[row * sizes.sorted + rank]) - row * sizes.length;
  values[index] = x[(outer * sizes.length + place) * sizes.stride + inner];
  indices[index] = place;
}

Status fits_sort(const LargestK& op, const Problem& problem) {
  const LargestRows rows(op, problem);
  if (rows.length == 0 || rows.rows <= most_elements / rows.length) return {};
  return unsupported("supports at most 2147483647 elements, found " + std::to_string(rows.rows) + " rows of " +
                     std::to_string(rows.length));
}

template <class Element>
cub::DoubleBuffer<Element> both_of(std::byte* workspace, const std::int64_t (&at)[2]) {
  return cub::DoubleBuffer<Element>(reinterpret_cast<Element*>(workspace + at[0]),
                                    reinterpret_cast<Element*>(workspace + at[1]));
}

template <class Key>
Status sort_all_by(cub::DoubleBuffer<Key>& keys, cub::DoubleBuffer<int>& places, int count, const LargestPlan& plan,
                   std::byte* workspace, const CudaContext& context, int bits = 8 * static_cast<int>(sizeof(Key))) {
  const auto sort = [&](void* memory, std::size_t& bytes) {
    return cub::DeviceRadixSort::SortPairs(memory, bytes, keys, places, count, 0, bits, context.stream);
  };
  return sort_within(LargestK::name, sort, workspace + plan.sort, plan.sort_bytes);
}

/// Sorts the positions by their keys. Sets `sorted` to the buffer that holds the sorted positions.
template <class Key>
Status sort_rows(const LargestRows& rows, const RowSizes& sizes, const LargestPlan& plan, std::byte* workspace,
                 const int*& sorted, const CudaContext& context) {
  const auto count = static_cast<int>(sizes.rows * sizes.sorted);
  auto keys = both_of<Key>(workspace, plan.keys);
  auto places = both_of<int>(workspace, plan.places);
  if (rows.rows < LargestRows::enough_for_a_block_each) {
    if (Status status = sort_all_by(keys, places, count, plan, workspace, context); !status.ok()) return status;
    if (rows.rows > 1) {
      auto row_keys = both_of<std::uint16_t>(workspace, plan.keys);
      if (Status made = launch(LargestK::name, make_row_keys, {ceil_divide(count, sort_threads), sort_threads}, context,
                               places.Current(), row_keys.Current(), sizes);
          !made.ok()) {
        return made;
      }
      constexpr int bits = 8;
      static_assert(LargestRows::enough_for_a_block_each <= 1 << bits);
      if (Status status = sort_all_by(row_keys, places, count, plan, workspace, context, bits); !status.ok()) {
        return status;
      }
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

/// Selects the kept elements of each row and writes their keys and positions to the first buffers of the plan.
template <class T>
Status select_rows(const T* x, const LargestRows& rows, const RowSizes& sizes, const LargestPlan& plan,
                   std::byte* workspace, bool largest, const CudaContext& context) {
  using Key = typename KeyOf<T>::Type;
  const Selection selection{.histograms = reinterpret_cast<unsigned*>(workspace + plan.histograms),
                            .states = reinterpret_cast<SelectState*>(workspace + plan.states),
                            .tile_counts = reinterpret_cast<uint2*>(workspace + plan.tile_counts),
                            .passes = select_passes(8 * static_cast<int>(sizeof(Key)))};
  const auto cleared =
      cudaMemsetAsync(selection.histograms, 0, static_cast<std::size_t>(plan.histograms_bytes), context.stream);
  if (Status status = cuda_status(cleared, LargestK::name); !status.ok()) return status;
  const Grid grid{rows.rows * select_tiles(rows.length), sort_threads};
  for (int pass = 0; pass < selection.passes; ++pass) {
    if (Status status = launch(LargestK::name, count_digits<T>, grid, context, x, selection, sizes, pass, largest);
        !status.ok()) {
      return status;
    }
  }
  if (Status status = launch(LargestK::name, count_selected<T>, grid, context, x, selection, sizes, largest);
      !status.ok()) {
    return status;
  }
  return launch(LargestK::name, take_selected<T>, grid, context, x, selection,
                reinterpret_cast<Key*>(workspace + plan.keys[0]), reinterpret_cast<int*>(workspace + plan.places[0]),
                sizes, largest);
}

Status run_sort(const LargestK& op, const Problem& problem, const Buffers& buffers, const CudaContext& context) {
  const LargestRows rows(op, problem);
  const LargestPlan plan(rows, problem.inputs[0].dtype);
  if (rows.rows == 0 || rows.kept == 0) return {};
  const bool are_selected = rows.are_selected(problem.inputs[0].dtype);
  const RowSizes sizes{.rows = static_cast<unsigned>(rows.rows),
                       .stride = static_cast<unsigned>(rows.stride),
                       .length = static_cast<unsigned>(rows.length),
                       .kept = static_cast<unsigned>(rows.kept),
                       .sorted = static_cast<unsigned>(are_selected ? rows.kept : rows.length)};
  auto* workspace = static_cast<std::byte*>(buffers.workspace);
  return dispatch_numbers(problem.inputs[0].dtype, [&](auto element) -> Status {
    using T = decltype(element);
    using Key = typename KeyOf<T>::Type;
    const auto* x = static_cast<const T*>(buffers.inputs[0]);
    const auto make_all = [&] {
      return launch(LargestK::name, make_keys<T>, {ceil_divide(rows.rows * rows.length, sort_threads), sort_threads},
                    context, x, reinterpret_cast<Key*>(workspace + plan.keys[0]),
                    reinterpret_cast<int*>(workspace + plan.places[0]), sizes, op.largest);
    };
    const auto select = [&] { return select_rows(x, rows, sizes, plan, workspace, op.largest, context); };
    if (Status made = are_selected ? select() : make_all(); !made.ok()) return made;
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

// CUDA kernels of NonZero. Elements are converted to bits, the bits of each tile are counted, the counts are summed up,
// and then each set bit writes its index. One block performs all steps for up to 32768 elements; larger tensors need
// one kernel per step, the last of which reads only the bits. Indices are written in the order of the elements, so two
// runs return the same result.
#include "kernels/divisor.cuh"
#include "kernels/launch.cuh"
#include "kernels/numbers.cuh"
#include "kernels/scan.cuh"
#include "ops/non_zero/non_zero.hpp"

namespace graft::ops {
namespace {

constexpr int warp = 32;
constexpr unsigned all_lanes = 0xFFFFFFFFU;
constexpr int tile_threads = static_cast<int>(NonZero::tile_words);
constexpr int block_threads = 1024;
constexpr std::int64_t block_elements = std::int64_t{block_threads} * warp;

template <class T>
__device__ bool is_set(T value) {
  if constexpr (std::is_integral_v<T>) {
    return value != 0;
  } else {
    return static_cast<float>(value) != 0;
  }
}

/// The sizes by which an index among all elements is split into one index per axis.
struct Axes {
  int rank = 0;
  bool is_small = false;  ///< Whether all indices fit into 31 bits.
  std::int64_t sizes[Extents::max_rank] = {};
  Divisor divisors[Extents::max_rank];
};

Axes axes_of(const Extents& extents) {
  constexpr std::int64_t small = 0x7FFFFFFF;
  Axes axes;
  axes.rank = extents.rank();
  axes.is_small = extents.element_count() <= small;
  for (int axis = 0; axis < axes.rank; ++axis) {
    axes.sizes[axis] = extents[axis];
    if (axes.is_small) axes.divisors[axis] = Divisor(static_cast<int>(extents[axis]));
  }
  return axes;
}

__device__ void store_index(std::int64_t* y, std::int64_t column, std::int64_t count, std::int64_t index,
                            const Axes& axes) {
  if (axes.is_small) {
    int rest = static_cast<int>(index);
    for (int axis = axes.rank - 1; axis > 0; --axis) {
      const int quotient = axes.divisors[axis].quotient(rest);
      y[axis * count + column] = rest - quotient * static_cast<int>(axes.sizes[axis]);
      rest = quotient;
    }
    y[column] = rest;
  } else {
    for (int axis = axes.rank - 1; axis > 0; --axis) {
      const std::int64_t quotient = index / axes.sizes[axis];
      y[axis * count + column] = index - quotient * axes.sizes[axis];
      index = quotient;
    }
    y[column] = index;
  }
}

/// Writes the indices of the elements whose bits are set in a warp's 32 words to consecutive columns of y, which has
/// `count` columns. Each lane passes one word, `own`; the index of its first set bit is written to column `column` +
/// `before`.
__device__ void store_words(std::int64_t* y, unsigned own, std::int64_t column, int before, std::int64_t count,
                            std::int64_t first_element, const Axes& axes) {
  const int lane = static_cast<int>(threadIdx.x) % warp;
  for (int each = 0; each < warp; ++each) {
    const unsigned word = __shfl_sync(all_lanes, own, each);
    const std::int64_t start = column + __shfl_sync(all_lanes, before, each);
    if ((word >> lane & 1U) == 0) continue;
    store_index(y, start + __popc(word & ((1U << lane) - 1)), count, first_element + each * warp + lane, axes);
  }
}

/// Returns to each lane of a warp one word with the bits of 32 elements: a bit is set if the element is not zero. The
/// warp reads the 1024 elements from `first` on.
template <class T>
__device__ unsigned words_of(const T* x, std::int64_t first, std::int64_t elements) {
  constexpr int loads = 8;  // the number of elements that a lane loads before it uses them
  const int lane = static_cast<int>(threadIdx.x) % warp;
  unsigned own = 0;
  for (int word = 0; word < warp; word += loads) {
    bool found[loads];
#pragma unroll
    for (int i = 0; i < loads; ++i) {
      const std::int64_t at = first + (word + i) * warp + lane;
      found[i] = at < elements && is_set(x[at]);
    }
#pragma unroll
    for (int i = 0; i < loads; ++i) {
      const unsigned bits = __ballot_sync(all_lanes, found[i]);
      if (lane == word + i) own = bits;
    }
  }
  return own;
}

template <class T, class Size>
__global__ void find_in_one_block(const T* x, std::int64_t* y, Size* count, std::int64_t elements, Axes axes) {
  const std::int64_t first = std::int64_t{threadIdx.x} / warp * warp * warp;
  const unsigned own =
      first < elements ? words_of(x, first, elements) : 0;  // The condition is equal for all lanes of a warp.
  const BlockSums<int> sums = block_sums<block_threads / warp>(__popc(own));
  if (threadIdx.x == 0) *count = static_cast<Size>(sums.all);
  store_words(y, own, 0, sums.before, sums.all, first, axes);
}

template <class T>
__global__ void mark_elements(const T* x, unsigned* words, std::int64_t* tile_counts, std::int64_t elements) {
  const std::int64_t word = std::int64_t{blockIdx.x} * tile_threads + threadIdx.x;
  const unsigned own = words_of(x, word / warp * warp * warp, elements);
  words[word] = own;
  const int all = block_sums<tile_threads / warp>(__popc(own)).all;
  if (threadIdx.x == 0) tile_counts[blockIdx.x] = all;
}

/// Replaces the count of each tile with the index of its first column in y.
template <class Size>
__global__ void number_tiles(std::int64_t* tile_counts, std::int64_t* total, Size* count, std::int64_t tiles) {
  std::int64_t before = 0;
  for (std::int64_t first = 0; first < tiles; first += block_threads) {
    const std::int64_t tile = first + threadIdx.x;
    const int own = tile < tiles ? static_cast<int>(tile_counts[tile]) : 0;
    const BlockSums<int> sums = block_sums<block_threads / warp>(own);
    if (tile < tiles) tile_counts[tile] = before + sums.before;
    before += sums.all;
  }
  if (threadIdx.x != 0) return;
  *total = before;
  *count = static_cast<Size>(before);
}

__global__ void store_indices(const unsigned* words, const std::int64_t* tile_starts, const std::int64_t* total,
                              std::int64_t* y, Axes axes) {
  const std::int64_t word = std::int64_t{blockIdx.x} * tile_threads + threadIdx.x;
  const unsigned own = words[word];
  const int before = block_sums<tile_threads / warp>(__popc(own)).before;
  store_words(y, own, tile_starts[blockIdx.x], before, *total, word / warp * warp * warp, axes);
}

Status fits_one_block(const NonZero& /*op*/, const Problem& problem) {
  const std::int64_t elements = problem.inputs[0].extents.element_count();
  if (elements <= block_elements) return {};
  return unsupported("supports at most " + std::to_string(block_elements) + " elements, found " +
                     std::to_string(elements));
}

Status run_one_block(const NonZero& /*op*/, const Problem& problem, const Buffers& buffers,
                     const CudaContext& context) {
  const std::int64_t elements = problem.inputs[0].extents.element_count();
  const Axes axes = elements == 0 ? Axes{} : axes_of(problem.inputs[0].extents);
  return dispatch_numbers(problem.inputs[0].dtype, [&](auto element) {
    using T = decltype(element);
    return dispatch_size(problem.outputs[1].dtype, buffers.outputs[1], [&](auto* count) {
      using Size = std::remove_pointer_t<decltype(count)>;
      return launch(NonZero::name, find_in_one_block<T, Size>, {1, block_threads}, context,
                    static_cast<const T*>(buffers.inputs[0]), static_cast<std::int64_t*>(buffers.outputs[0]), count,
                    elements, axes);
    });
  });
}

Status fits_tiles(const NonZero& /*op*/, const Problem& /*problem*/) { return {}; }

Status run_tiles(const NonZero& /*op*/, const Problem& problem, const Buffers& buffers, const CudaContext& context) {
  const std::int64_t elements = problem.inputs[0].extents.element_count();
  const std::int64_t tiles = ceil_divide(elements, NonZero::tile_elements);
  auto* total = static_cast<std::int64_t*>(buffers.workspace);
  std::int64_t* tile_counts = total + 1;
  auto* words = reinterpret_cast<unsigned*>(tile_counts + tiles);
  const Status marked = dispatch_numbers(problem.inputs[0].dtype, [&](auto element) {
    using T = decltype(element);
    return launch(NonZero::name, mark_elements<T>, {tiles, tile_threads}, context,
                  static_cast<const T*>(buffers.inputs[0]), words, tile_counts, elements);
  });
  if (!marked.ok()) return marked;
  const Status numbered = dispatch_size(problem.outputs[1].dtype, buffers.outputs[1], [&](auto* count) {
    using Size = std::remove_pointer_t<decltype(count)>;
    return launch(NonZero::name, number_tiles<Size>, {1, block_threads}, context, tile_counts, total, count, tiles);
  });
  if (!numbered.ok() || elements == 0) return numbered;
  return launch(NonZero::name, store_indices, {tiles, tile_threads}, context, words, tile_counts, total,
                static_cast<std::int64_t*>(buffers.outputs[0]), axes_of(problem.inputs[0].extents));
}

}  // namespace

std::span<const Variant<NonZero>> cuda_kernels(const NonZero& /*op*/) {
  static constexpr std::array variants{Variant<NonZero>{"one_block", fits_one_block, run_one_block},
                                       Variant<NonZero>{"tiles", fits_tiles, run_tiles}};
  return variants;
}

}  // namespace graft::ops

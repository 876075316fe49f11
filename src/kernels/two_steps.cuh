// Reductions of long pieces of memory followed by a second look at them, in one launch: blocks take parts of rows first
// to reduce them and, while the L2 cache still has them, to finish them.
#pragma once

#include <algorithm>

#include "kernels/launch.cuh"

namespace graft {

/// Parts of all rows, numbered one after the other. `begun` and `reduced` are 0 at the start.
struct TwoSteps {
  std::int64_t share;  ///< Elements of a part.
  int parts;           ///< Of each row.
  int all_parts;
  int lead;           ///< Parts that are reduced before the first one is finished.
  unsigned* begun;    ///< Blocks.
  unsigned* reduced;  ///< Of each row: parts.

  struct Turn {
    bool reduces;
    int part;
    int row;
    std::int64_t offset;  ///< Of the part in its row.
  };

  /// All threads of a block call this. Work is handed out in order, so what a block waits for is done or being done,
  /// whichever blocks run at a time.
  [[nodiscard]] __device__ Turn take_turn() const {
    __shared__ unsigned ticket;
    if (threadIdx.x == 0) ticket = atomicAdd(begun, 1U);
    __syncthreads();
    const auto turn = static_cast<int>(ticket);
    const int after_lead = turn - lead;
    const int alternating = 2 * (all_parts - lead);
    Turn taken{};
    taken.reduces = after_lead < 0 || (after_lead < alternating && after_lead % 2 == 0);
    taken.part = after_lead < 0             ? turn
                 : after_lead < alternating ? after_lead / 2 + (taken.reduces ? lead : 0)
                                            : after_lead - alternating / 2;
    taken.row = taken.part / parts;
    taken.offset = (taken.part - taken.row * parts) * share;
    return taken;
  }
  /// One thread calls this, after it has written the part's result.
  __device__ void tell(const Turn& turn) const {
    __threadfence();
    atomicAdd(reduced + turn.row, 1U);
  }
  /// All threads of a block call this; then they read the results of all parts of the row, past the L1 cache.
  __device__ void wait_for_row(const Turn& turn) const {
    if (threadIdx.x == 0) {
      const volatile unsigned* done = reduced + turn.row;
      while (*done < static_cast<unsigned>(parts)) {
      }
      __threadfence();
    }
    __syncthreads();
  }
};

/// The most rows of a workspace of `bytes`, where a part's result is a `Result`: each needs a counter and one part.
template <class Result>
[[nodiscard]] constexpr std::int64_t two_steps_most_rows(std::size_t bytes) {
  return static_cast<std::int64_t>((bytes - sizeof(Result)) / (sizeof(unsigned) + sizeof(Result)));
}

/// Rows of `length` elements whose parts are a multiple of `turn` elements; clears the counters. The parts' results lie
/// at `results`.
template <class Result>
[[nodiscard]] Status start_two_steps(const char* what, std::int64_t rows, std::int64_t length, std::int64_t turn,
                                     void* workspace, std::size_t bytes, const DeviceTraits& device,
                                     const CudaContext& context, TwoSteps& steps, Result*& results) {
  // Tuned on an H200: as many as run at a time, so that what is finished first has been reduced.
  constexpr std::int64_t lead_of_multiprocessor = 2;
  const auto counters = static_cast<std::size_t>(1 + rows) * sizeof(unsigned);
  const std::int64_t turns = ceil_divide(length, turn);
  const auto room = static_cast<std::int64_t>((bytes - counters) / sizeof(Result));
  steps.share = ceil_divide(turns, std::min(turns, room / rows)) * turn;
  steps.parts = static_cast<int>(ceil_divide(length, steps.share));
  steps.all_parts = static_cast<int>(steps.parts * rows);
  steps.lead = static_cast<int>(
      std::min<std::int64_t>(steps.all_parts, steps.parts + lead_of_multiprocessor * device.multiprocessors));
  steps.begun = static_cast<unsigned*>(workspace);
  steps.reduced = steps.begun + 1;
  results = reinterpret_cast<Result*>(steps.reduced + rows);
  return cuda_status(cudaMemsetAsync(workspace, 0, counters, context.stream), what);
}

}  // namespace graft

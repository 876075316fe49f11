// Reduces long rows and then makes a second pass over them, in one launch: blocks first reduce parts of rows, and
// complete them while they are still in the L2 cache.
#pragma once

#include <algorithm>

#include "kernels/launch.cuh"

namespace graft {

/// The order in which blocks process rows that are divided into parts, which are numbered consecutively over all rows.
/// Each part has two turns: in the first one it is reduced, in the second one it is completed with the result of its
/// whole row. `begun` and the elements of `reduced` must be 0 at the start.
struct TwoSteps {
  std::int64_t share;  ///< The number of elements in a part.
  int parts;           ///< The number of parts in each row.
  int all_parts;
  int lead;           ///< The number of parts that are reduced before the first part is completed.
  unsigned* begun;    ///< A counter of the turns that blocks have begun.
  unsigned* reduced;  ///< A counter of the reduced parts for each row.

  struct Turn {
    bool reduces;
    int part;
    int row;
    std::int64_t offset;  ///< The offset of the part in its row, in elements.
  };

  /// Returns the next turn of this block: a part, and whether to reduce it (`reduces`) or to complete it. All threads
  /// of the block call this function together. Turns are assigned in order, so a block waits only for work that is done
  /// or in progress, whichever blocks run at the same time.
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
  /// Reports that a part has been reduced. One thread calls this function, after it has written the result of the part.
  __device__ void tell(const Turn& turn) const {
    __threadfence();
    atomicAdd(reduced + turn.row, 1U);
  }
  /// Waits until all parts of the row have been reduced. All threads of a block call this function, and afterwards read
  /// the results of the parts with loads that bypass the L1 cache.
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

/// Returns the maximum number of rows for a workspace of `bytes` bytes, in which each row needs a counter and at least
/// one `Result`, the result of a part.
template <class Result>
[[nodiscard]] constexpr std::int64_t two_steps_most_rows(std::size_t bytes) {
  return static_cast<std::int64_t>((bytes - sizeof(Result)) / (sizeof(unsigned) + sizeof(Result)));
}

/// Divides rows of `length` elements into parts whose length is a multiple of `turn` elements, clears the counters in
/// the workspace, and sets `steps`. `results` is set to the address of the results of the parts.
template <class Result>
[[nodiscard]] Status start_two_steps(const char* what, std::int64_t rows, std::int64_t length, std::int64_t turn,
                                     void* workspace, std::size_t bytes, const DeviceTraits& device,
                                     const CudaContext& context, TwoSteps& steps, Result*& results) {
  // Tuned on an H200: the lead is the number of parts that run at the same time, so that the parts that are completed
  // first have already been reduced.
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

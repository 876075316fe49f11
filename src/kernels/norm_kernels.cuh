// The CUDA variants of every operator that divides by a Euclidean norm, and the problems that each supports.
#pragma once

#include <algorithm>
#include <array>
#include <span>

#include "core/reduction.hpp"
#include "graft/operator/define_operator.hpp"
#include "kernels/norm.cuh"
#include "kernels/norm_columns.cuh"
#include "kernels/norm_long.cuh"
#include "kernels/norm_rows.cuh"
#include "kernels/norm_strided.cuh"
#include "kernels/row_vectors.cuh"

namespace graft {
namespace kernels {

/// The CUDA variants of an operator that divides by a norm. Traits describe the definition of the operator:
///   Op, the definition, which has split_workspace
///   std::span<const std::int64_t> axes(const Op&, const Problem&)
///   Normalizer normalizer(const Op&)
///   ChannelWeights weights(const Op&, const Problem&, const Buffers&)
template <class Traits>
struct NormKernels {
  using Op = typename Traits::Op;
  static constexpr std::size_t vector_bytes = 16;

  static int vector_width(const Problem& problem) {
    return static_cast<int>(vector_bytes / size_of(problem.inputs[0].dtype));
  }
  static Status make_plan(const Op& op, const Problem& problem, ReductionPlan& plan) {
    return plan_reduction(problem.inputs[0].extents, Traits::axes(op, problem), plan);
  }

  static Status wants_layout(const Problem& problem, Layout layout) {
    const Layout found = problem.inputs[0].layout;
    if (found == layout) return {};
    return unsupported("needs layout " + std::string(to_string(layout)) + ", found " + std::string(to_string(found)));
  }

  /// Fills a NormTask from the problem and its buffers and calls `Run` with it. Does nothing if the tensor is empty.
  template <Status (*Run)(const NormTask&, const CudaContext&)>
  static Status run(const Op& op, const Problem& problem, const Buffers& buffers, const CudaContext& context) {
    NormTask task{
        .what = Op::name,
        .desc = problem.inputs[0],
        .plan = {},
        .normalizer = Traits::normalizer(op),
        .weights = Traits::weights(op, problem, buffers),
        .device = {},
        .aligned = is_aligned(buffers.inputs[0], vector_bytes) && is_aligned(buffers.outputs[0], vector_bytes),
        .x = buffers.inputs[0],
        .y = buffers.outputs[0],
        .workspace = buffers.workspace,
        .workspace_bytes = Op::split_workspace};
    if (Status status = make_plan(op, problem, task.plan); !status.ok()) return status;
    if (task.desc.extents.element_count() == 0) return {};
    if (Status status = current_device(task.device); !status.ok()) return status;
    return Run(task, context);
  }

  // rows: the reduced axes are the innermost ones.

  static Status rows_fits(const Op& op, const Problem& problem) {
    if (Status status = wants_layout(problem, Layout::linear); !status.ok()) return status;
    ReductionPlan plan;
    if (Status status = make_plan(op, problem, plan); !status.ok()) return status;
    if (plan.reduced_extents.rank() != 1 || plan.reduced_strides[0] != 1) {
      return unsupported("supports only a norm over the innermost axes");
    }
    const std::int64_t vectors = row_vectors(plan.reduced_count, vector_width(problem));
    if (vectors <= rows_capacity) return {};
    return unsupported("supports a norm over up to " + std::to_string(rows_capacity) + " vectors of 16 bytes, found " +
                       std::to_string(vectors));
  }

  // pieces: the innermost axis and one outer axis are reduced, so that a vector consists of rows at a stride.

  static Status pieces_fits(const Op& op, const Problem& problem) {
    if (Status status = wants_layout(problem, Layout::linear); !status.ok()) return status;
    ReductionPlan plan;
    if (Status status = make_plan(op, problem, plan); !status.ok()) return status;
    if (plan.reduced_extents.rank() != 2 || plan.reduced_strides[1] != 1) {
      return unsupported("supports only a norm over two groups of neighboring axes, of which the second is innermost");
    }
    const std::int64_t vectors = plan.reduced_extents[0] * row_vectors(plan.reduced_extents[1], vector_width(problem));
    if (vectors <= rows_capacity) return {};
    return unsupported("supports a norm over up to " + std::to_string(rows_capacity) + " vectors of 16 bytes, found " +
                       std::to_string(vectors));
  }

  // columns: one axis is reduced, and the kept axes inside it are contiguous.

  static Status columns_fits(const Op& op, const Problem& problem) {
    if (Status status = wants_layout(problem, Layout::linear); !status.ok()) return status;
    ReductionPlan plan;
    if (Status status = make_plan(op, problem, plan); !status.ok()) return status;
    if (!inner_is_kept(plan) || plan.reduced_extents.rank() > 1) {
      return unsupported("supports only a norm over neighboring axes that are not innermost");
    }
    return dispatch_device(problem.inputs[0].dtype, [&](auto element) -> Status {
      using T = decltype(element);
      const std::int64_t inner = innermost(plan);
      constexpr int narrow = narrow_of_columns<T>;
      const int longest = inner % widest<T> == 0 ? columns_capacity<T, widest<T>>
                          : inner % narrow == 0  ? columns_capacity<T, narrow>
                                                 : columns_capacity<T, 1>;
      if (plan.reduced_count <= longest) return {};
      return unsupported("supports a norm over up to " + std::to_string(longest) + " elements, found " +
                         std::to_string(plan.reduced_count));
    });
  }

  // hwc8: pixels are padded rows.

  static Status hwc8_fits(const Op& /*op*/, const Problem& problem) {
    if (Status status = wants_layout(problem, Layout::hwc8); !status.ok()) return status;
    const std::int64_t longest = std::int64_t{rows_capacity} * channels_per_vector(Layout::hwc8);
    if (problem.inputs[0].extents[1] <= longest) return {};
    return unsupported("supports up to " + std::to_string(longest) + " channels, found " +
                       std::to_string(problem.inputs[0].extents[1]));
  }

  // chw32: vectors of 32 channels are adjacent, pixel by pixel.

  static Status chw32_fits(const Op& /*op*/, const Problem& problem) {
    if (Status status = wants_layout(problem, Layout::chw32); !status.ok()) return status;
    // The capacity is half of that of i8 columns, because the vector of a pixel is two threads wide.
    const std::int64_t longest = columns_capacity<std::int8_t, 16> / 2 * channels_per_vector(Layout::chw32);
    if (problem.inputs[0].extents[1] <= longest) return {};
    return unsupported("supports up to " + std::to_string(longest) + " channels, found " +
                       std::to_string(problem.inputs[0].extents[1]));
  }

  // long: rows that are too long for a cluster, summed and scaled in one launch.

  static Status long_fits(const Op& op, const Problem& problem) {
    if (Status status = wants_layout(problem, Layout::linear); !status.ok()) return status;
    ReductionPlan plan;
    if (Status status = make_plan(op, problem, plan); !status.ok()) return status;
    const std::int64_t most = two_steps_most_rows<float>(Op::split_workspace);
    const std::int64_t longest = rows_capacity * vector_width(problem);
    if (plan.reduced_extents.rank() == 1 && plan.reduced_strides[0] == 1 && plan.kept_count <= most &&
        row_vectors(plan.reduced_count, vector_width(problem)) > rows_capacity) {
      return {};
    }
    return unsupported("supports only up to " + std::to_string(most) +
                       " norms over the innermost axes, each over more than about " + std::to_string(longest) +
                       " elements");
  }

  // split: there are too few vectors for one block per vector, or per 32 vectors, so several blocks share each vector,
  // in two launches.

  static Status split_fits(const Op& op, const Problem& problem) {
    constexpr std::int64_t most_tiles = 1024;
    constexpr std::int64_t least_elements = 512;
    if (Status status = wants_layout(problem, Layout::linear); !status.ok()) return status;
    ReductionPlan plan;
    if (Status status = make_plan(op, problem, plan); !status.ok()) return status;
    const std::int64_t most_vectors =
        std::min<std::int64_t>(most_tiles * (inner_is_kept(plan) ? 32 : 1), Op::split_workspace / sizeof(float) / 2);
    if (plan.kept_count <= most_vectors && plan.reduced_count >= least_elements) return {};
    return unsupported("supports up to " + std::to_string(most_vectors) + " norms, each over at least " +
                       std::to_string(least_elements) + " elements");
  }

  static Status strided_fits(const Op& /*op*/, const Problem& problem) { return wants_layout(problem, Layout::linear); }
};

}  // namespace kernels

/// Returns the variants of an operator that Traits (see NormKernels) describe.
template <class Traits>
[[nodiscard]] std::span<const Variant<typename Traits::Op>> norm_kernels() {
  using Kernels = kernels::NormKernels<Traits>;
  using OneVariant = Variant<typename Traits::Op>;
  static constexpr std::array variants{
      OneVariant{"rows", Kernels::rows_fits, Kernels::template run<run_norm_rows>},
      OneVariant{"pieces", Kernels::pieces_fits, Kernels::template run<run_norm_pieces>},
      OneVariant{"columns", Kernels::columns_fits, Kernels::template run<run_norm_columns>},
      OneVariant{"hwc8", Kernels::hwc8_fits, Kernels::template run<run_norm_hwc8>},
      OneVariant{"chw32", Kernels::chw32_fits, Kernels::template run<run_norm_chw32>},
      OneVariant{"long", Kernels::long_fits, Kernels::template run<run_norm_long>},
      OneVariant{"split", Kernels::split_fits, Kernels::template run<run_norm_split>},
      OneVariant{"strided", Kernels::strided_fits, Kernels::template run<run_norm_strided>}};
  return variants;
}

}  // namespace graft

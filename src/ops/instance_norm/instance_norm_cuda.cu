// CUDA kernels of InstanceNorm, and the choice between them.
#include <cmath>

#include "ops/instance_norm/channels.cuh"
#include "ops/instance_norm/instance_norm.hpp"
#include "ops/instance_norm/split.cuh"

namespace graft::ops {
namespace {

constexpr std::size_t vector_bytes = 16;

/// The sizes, parameters and device properties that every variant uses.
struct Task {
  std::int64_t count;   ///< The number of channels in all items.
  std::int64_t length;  ///< The number of elements in a channel.
  int per_item;         ///< The number of channels in an item.
  ChannelNorm norm;
  DeviceTraits device;
  bool aligned;  ///< Whether x and y are aligned to 128 bits.
  bool alike;    ///< Whether x and y lie at the same distance from a multiple of 128 bits.
};

std::int64_t length_of(const Extents& extents) {
  std::int64_t length = 1;
  for (int axis = 2; axis < extents.rank(); ++axis) length *= extents[axis];
  return length;
}

/// Calls `f(task, x, y)` with typed addresses. Does nothing if the tensor is empty.
template <class F>
Status with_task(const InstanceNorm& op, const Problem& problem, const Buffers& buffers, F&& f) {
  const TensorDesc& desc = problem.inputs[0];
  if (desc.extents.element_count() == 0) return {};
  const std::int64_t length = length_of(desc.extents);
  int exponent = 0;
  if (desc.dtype != DType::i8) exponent = 1 + std::ilogb(static_cast<double>(length) * 2 - 1);
  const ChannelNorm norm{.scale = static_cast<const float*>(buffers.inputs[1]),
                         .bias = static_cast<const float*>(buffers.inputs[2]),
                         .epsilon = op.epsilon,
                         .slope = op.negative_slope(),
                         .x_scale = op.x_scale,
                         .y_scale = op.y_scale,
                         .power = std::ldexp(1.F, -exponent),
                         .inverse_power = std::ldexp(1.F, exponent)};
  Task task{.count = desc.extents[0] * desc.extents[1],
            .length = length,
            .per_item = static_cast<int>(desc.extents[1]),
            .norm = norm,
            .device = {},
            .aligned = is_aligned(buffers.inputs[0], vector_bytes) && is_aligned(buffers.outputs[0], vector_bytes),
            .alike = (reinterpret_cast<std::uintptr_t>(buffers.inputs[0]) -
                      reinterpret_cast<std::uintptr_t>(buffers.outputs[0])) %
                         vector_bytes ==
                     0};
  if (Status status = current_device(task.device); !status.ok()) return status;
  return dispatch_device(desc.dtype, [&](auto element) {
    using T = decltype(element);
    return f(task, static_cast<const T*>(buffers.inputs[0]), static_cast<T*>(buffers.outputs[0]));
  });
}

template <class T>
Status run_split_channels(const Task& task, const T* x, T* y, void* workspace, const CudaContext& context) {
  const auto run = [&]<int N>(std::integral_constant<int, N>) {
    return run_split<T, N>(x, y, task.count, task.length, task.per_item, task.norm, workspace,
                           InstanceNorm::split_workspace, task.device, context);
  };
  if (task.aligned && task.length % widest<T> == 0) return run(std::integral_constant<int, widest<T>>{});
  return run(std::integral_constant<int, 1>{});
}

Status channels_fits(const InstanceNorm& /*op*/, const Problem& problem) {
  const std::int64_t length = length_of(problem.inputs[0].extents);
  const auto width = static_cast<std::int64_t>(vector_bytes / size_of(problem.inputs[0].dtype));
  if (length <= channel_capacity * width) return {};
  return unsupported("supports channels of up to " + std::to_string(channel_capacity * width) + " elements, found " +
                     std::to_string(length));
}

Status channels_run(const InstanceNorm& op, const Problem& problem, const Buffers& buffers,
                    const CudaContext& context) {
  return with_task(op, problem, buffers, [&]<class T>(const Task& task, const T* x, T* y) {
    // channels_fits decides without the addresses and without the GPU, so both are checked here.
    const std::int64_t most = task.device.has_clusters() ? channel_capacity : channel_capacity_of_block;
    if (!task.alike || task.length > most * widest<T>) {
      return run_split_channels(task, x, y, buffers.workspace, context);
    }
    const Channels channels{.count = task.count, .length = static_cast<int>(task.length), .per_item = task.per_item};
    return run_channels(x, y, channels, task.norm, task.device, context);
  });
}

Status split_fits(const InstanceNorm& /*op*/, const Problem& /*problem*/) { return {}; }

Status split_run(const InstanceNorm& op, const Problem& problem, const Buffers& buffers, const CudaContext& context) {
  return with_task(op, problem, buffers, [&]<class T>(const Task& task, const T* x, T* y) {
    return run_split_channels(task, x, y, buffers.workspace, context);
  });
}

}  // namespace

std::span<const Variant<InstanceNorm>> cuda_kernels(const InstanceNorm& /*op*/) {
  static constexpr std::array variants{Variant<InstanceNorm>{"channels", channels_fits, channels_run},
                                       Variant<InstanceNorm>{"split", split_fits, split_run}};
  return variants;
}

}  // namespace graft::ops

// Convolution of f32 in TF32 on Hopper's tensor cores: an implicit matrix product of weights (rows) and pixels
// (columns), so that the sums of a thread are adjacent in a linear y. Linear x and weight are first copied to rows of
// channels and rounded to TF32. Tensors in hwc8 are read in place, and tensor cores truncate the bits that TF32 does
// not have.
#include <limits>

#include "kernels/divisor.cuh"
#include "ops/convolution/plan.hpp"
#include "ops/convolution/repack.hpp"
#include "ops/convolution/variants.hpp"
#include "ops/convolution/wgmma_launch.cuh"

namespace graft::ops {
namespace {

#if GRAFT_SM90A
constexpr int tf32_columns = 128;    // the number of pixels of a tile
constexpr int tf32_chunk = 32;       // the number of channels of a tap that a stage holds
constexpr int tf32_consumers = 256;  // threads that multiply; two more warps copy
constexpr int tf32_threads = tf32_consumers + 64;

/// A tile of `Rows` channels of y. With 128 rows, each half of the threads that multiply computes 64 rows; with 64
/// rows, each half computes half of the pixels.
template <int Rows>
struct Tf32Tile {
  static constexpr int rows = Rows;
  static constexpr int stages = Rows == 128 ? 3 : 4;
  static constexpr int row_bytes = tf32_chunk * 4;
  static constexpr int weight_bytes = Rows * row_bytes;
  static constexpr int pixel_bytes = tf32_columns * row_bytes;
  static constexpr int stage_bytes = weight_bytes + pixel_bytes;
  static constexpr int shared_bytes = stages * (stage_bytes + 16);
};

struct Tf32Task {
  const float* bias;
  float* y;
  ConvolutionEpilogue epilogue;
  int pixels;
  int image_pixels;
  int width;
  int height;
  int outputs;
  int stride_w, stride_h, pad_w, pad_h, dilation_w, dilation_h;
  int taps_w;
  int chunks_of_tap;
  int stages;
  int row_tiles;
  int stored_outputs;  ///< The number of channels that a pixel of y has in hwc8, including padding; 0 if y is linear.
  bool pairs;          ///< Whether two pixels are stored at once.
  Divisor by_image;
};

#if defined(__CUDA_ARCH_FEAT_SM90_ALL)
__device__ void multiply(float (&d)[64], std::uint64_t rows, std::uint64_t columns, int accumulate) {
#define GRAFT_8(i)                                                                                            \
  "+f"(d[i]), "+f"(d[i + 1]), "+f"(d[i + 2]), "+f"(d[i + 3]), "+f"(d[i + 4]), "+f"(d[i + 5]), "+f"(d[i + 6]), \
      "+f"(d[i + 7])
  asm volatile(
      "{\n.reg .pred keep;\nsetp.ne.b32 keep, %66, 0;\n"
      "wgmma.mma_async.sync.aligned.m64n128k8.f32.tf32.tf32 {"
      "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, "
      "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, "
      "%32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, "
      "%48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63}, "
      "%64, %65, keep, 1, 1;\n}"
      : GRAFT_8(0), GRAFT_8(8), GRAFT_8(16), GRAFT_8(24), GRAFT_8(32), GRAFT_8(40), GRAFT_8(48), GRAFT_8(56)
      : "l"(rows), "l"(columns), "r"(accumulate));
}
__device__ void multiply(float (&d)[32], std::uint64_t rows, std::uint64_t columns, int accumulate) {
  asm volatile(
      "{\n.reg .pred keep;\nsetp.ne.b32 keep, %34, 0;\n"
      "wgmma.mma_async.sync.aligned.m64n64k8.f32.tf32.tf32 {"
      "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, "
      "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31}, "
      "%32, %33, keep, 1, 1;\n}"
      : GRAFT_8(0), GRAFT_8(8), GRAFT_8(16), GRAFT_8(24)
      : "l"(rows), "l"(columns), "r"(accumulate));
#undef GRAFT_8
}
#endif

template <class Tile>
__global__ void __launch_bounds__(tf32_threads, 2)
    tf32_product(const __grid_constant__ CUtensorMap x_map, const __grid_constant__ CUtensorMap weight_map,
                 const __grid_constant__ Tf32Task task) {
#if defined(__CUDA_ARCH_FEAT_SM90_ALL)
  extern __shared__ __align__(1024) char memory[];
  const std::uint32_t stages_at = hopper::shared_address(memory);
  const std::uint32_t full = stages_at + Tile::stages * Tile::stage_bytes;
  const std::uint32_t empty = full + Tile::stages * 8;
  const int warp = __shfl_sync(0xFFFFFFFFU, static_cast<int>(threadIdx.x) / 32, 0);
  const int tile = static_cast<int>(blockIdx.x);
  const int column_tile = tile / task.row_tiles;
  const int first_row = (tile - column_tile * task.row_tiles) * Tile::rows;
  const int first_pixel = column_tile * tf32_columns;
  if (threadIdx.x == 0) {
    hopper::prefetch(x_map);
    hopper::prefetch(weight_map);
    for (unsigned i = 0; i < Tile::stages; ++i) {
      hopper::barrier_init(full + i * 8, 2);
      hopper::barrier_init(empty + i * 8, 2);
    }
    hopper::barrier_init_fence();
  }
  __syncthreads();

  if (warp >= tf32_consumers / 32) {
    // One thread copies pixels, and one thread of another warp copies weights.
    const bool copies_pixels = threadIdx.x == tf32_consumers;
    if (!copies_pixels && threadIdx.x != tf32_consumers + 32) return;
    const int row = first_pixel / task.width;
    const int w = (first_pixel - row * task.width) * task.stride_w - task.pad_w;
    const int image = row / task.height;
    const int h = (row - image * task.height) * task.stride_h - task.pad_h;
    int part = 0;
    int tap = 0;
    int r = 0;
    int s = 0;
    int stage = 0;
    unsigned phase = 1;
    for (int i = 0; i < task.stages; ++i) {
      const std::uint32_t arrived = full + 8U * static_cast<unsigned>(stage);
      const std::uint32_t to = stages_at + static_cast<unsigned>(stage * Tile::stage_bytes);
      hopper::barrier_wait(empty + 8U * static_cast<unsigned>(stage), phase);
      hopper::barrier_expect(arrived, copies_pixels ? Tile::pixel_bytes : Tile::weight_bytes);
      if (copies_pixels) {
        hopper::copy_pixels(x_map, to + Tile::weight_bytes, arrived, part * tf32_chunk, w, h, image,
                            s * task.dilation_w, r * task.dilation_h);
      } else {
        hopper::copy_box(weight_map, to, arrived, part * tf32_chunk, tap, 0, 0, first_row);
      }
      if (++part == task.chunks_of_tap) {
        part = 0;
        ++tap;
        if (++s == task.taps_w) {
          s = 0;
          ++r;
        }
      }
      if (++stage == Tile::stages) {
        stage = 0;
        phase ^= 1U;
      }
    }
    return;
  }

  // The descriptor of swizzled rows of 128 bytes in groups of eight consecutive rows.
  constexpr std::uint64_t descriptor = std::uint64_t{1} << 62U | std::uint64_t{64} << 32U | std::uint64_t{1} << 16U;
  constexpr int own_columns = tf32_columns * Tile::rows / 128;
  const int group = warp / 4;
  const int own_row = Tile::rows == 128 ? group * 64 : 0;
  const int own_column = Tile::rows == 128 ? 0 : group * own_columns;
  const auto rows_at = static_cast<unsigned>(own_row * Tile::row_bytes);
  const auto columns_at = static_cast<unsigned>(Tile::weight_bytes + own_column * Tile::row_bytes);
  float sums[own_columns / 2];
  int stage = 0;
  int used = 0;
  unsigned phase = 0;
  const auto release = [&](int which) {
    if (threadIdx.x % 128 == 0) hopper::barrier_arrive(empty + 8U * static_cast<unsigned>(which));
  };
  for (int i = 0; i < task.stages; ++i) {
    hopper::barrier_wait(full + 8U * static_cast<unsigned>(stage), phase);
    const std::uint32_t at = stages_at + static_cast<unsigned>(stage * Tile::stage_bytes);
    hopper::product_fence();
#pragma unroll
    for (unsigned k = 0; k < 4; ++k) {
      multiply(sums, descriptor + (at + rows_at + k * 32) / 16U, descriptor + (at + columns_at + k * 32) / 16U,
               i > 0 || k > 0 ? 1 : 0);
    }
    hopper::product_commit();
    if (i > 0) {
      hopper::product_wait<1>();
      release(used);
    }
    used = stage;
    if (++stage == Tile::stages) {
      stage = 0;
      phase ^= 1U;
    }
  }
  hopper::product_wait<0>();

  const int lane = hopper::lane();
  const int row = first_row + own_row + warp % 4 * 16 + lane / 4;
  float biases[2];
#pragma unroll
  for (int half = 0; half < 2; ++half) biases[half] = task.bias[::min(row + half * 8, task.outputs - 1)];
#pragma unroll
  for (int j = 0; j < own_columns / 8; ++j) {
    const int pixel = first_pixel + own_column + j * 8 + lane % 4 * 2;
    if (pixel >= task.pixels) break;
    if (task.stored_outputs > 0) {
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        float values[2];
#pragma unroll
        for (int i = 0; i < 2; ++i) values[i] = sums[j * 4 + half * 2 + i] + biases[half];
        task.epilogue.activate_all(values);
        if (row + half * 8 >= task.stored_outputs) break;
        const bool is_padding = row + half * 8 >= task.outputs;
        float* const at = task.y + static_cast<std::int64_t>(pixel) * task.stored_outputs + row + half * 8;
        at[0] = is_padding ? 0 : values[0];
        if (pixel + 1 < task.pixels) at[task.stored_outputs] = is_padding ? 0 : values[1];
      }
      continue;
    }
    const int image = task.by_image.quotient(pixel);
    const int in_image = pixel - image * task.image_pixels;
    float* const to = task.y + (static_cast<std::int64_t>(image) * task.outputs + row) * task.image_pixels + in_image;
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      if (row + half * 8 >= task.outputs) break;
      float values[2];
#pragma unroll
      for (int i = 0; i < 2; ++i) values[i] = sums[j * 4 + half * 2 + i] + biases[half];
      task.epilogue.activate_all(values);
      float* const at = to + static_cast<std::int64_t>(half) * 8 * task.image_pixels;
      if (task.pairs) {
        *reinterpret_cast<float2*>(at) = make_float2(values[0], values[1]);
        continue;
      }
      at[0] = values[0];
      if (pixel + 1 >= task.pixels) continue;
      // The next image begins after the following channels of this image.
      const bool next = in_image + 1 == task.image_pixels;
      at[next ? 1 + static_cast<std::int64_t>(task.outputs - 1) * task.image_pixels : 1] = values[1];
    }
  }
#endif
}

/// The addresses of x and weight in rows of channels, and the bytes from one row to the next.
struct Tf32Inputs {
  void* x;
  void* weight;
  std::int64_t pixel_bytes;
};

/// Encodes the tensor maps of x, in the order in which the taps of the window read it, and of weight.
Status make_maps(const ConvolutionPlan& plan, const Tf32Inputs& inputs, int rows, CUtensorMap& x_map,
                 CUtensorMap& weight_map) {
  wgmma::detail::Encoders encode;
  if (Status status = wgmma::detail::encoders(encode); !status.ok()) return status;
  const auto& [depth, h, w] = plan.axis;
  const auto number = [](std::int64_t value) { return static_cast<cuuint64_t>(value); };
  const cuuint64_t pixel_bytes = number(inputs.pixel_bytes);
  const cuuint32_t ones[5] = {1, 1, 1, 1, 1};
  const cuuint64_t x_extents[4] = {number(plan.channels), number(w.in), number(h.in), number(plan.batch)};
  const cuuint64_t x_strides[3] = {pixel_bytes, pixel_bytes * x_extents[1], pixel_bytes * x_extents[1] * x_extents[2]};
  const int lower[2] = {static_cast<int>(-w.pad), static_cast<int>(-h.pad)};
  const int upper[2] = {static_cast<int>(wgmma::last_corner(w)), static_cast<int>(wgmma::last_corner(h))};
  const cuuint32_t steps[4] = {1, static_cast<cuuint32_t>(w.stride), static_cast<cuuint32_t>(h.stride), 1};
  if (Status status = wgmma::detail::encoded(
          encode.im2col(&x_map, CU_TENSOR_MAP_DATA_TYPE_FLOAT32, 4, inputs.x, x_extents, x_strides, lower, upper,
                        tf32_chunk, tf32_columns, steps, CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_SWIZZLE_128B,
                        CU_TENSOR_MAP_L2_PROMOTION_L2_256B, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE),
          "cuTensorMapEncodeIm2col");
      !status.ok()) {
    return status;
  }
  const cuuint64_t taps = number(plan.window());
  const cuuint64_t filter_bytes = pixel_bytes * taps;
  const cuuint64_t extents[5] = {number(plan.channels), taps, 1, 1, number(plan.outputs)};
  const cuuint64_t strides[4] = {pixel_bytes, filter_bytes, filter_bytes, filter_bytes};
  const cuuint32_t box[5] = {tf32_chunk, 1, 1, 1, static_cast<cuuint32_t>(rows)};
  return wgmma::detail::encoded(
      encode.tiled(&weight_map, CU_TENSOR_MAP_DATA_TYPE_FLOAT32, 5, inputs.weight, extents, strides, box, ones,
                   CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_SWIZZLE_128B, CU_TENSOR_MAP_L2_PROMOTION_L2_256B,
                   CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE),
      "cuTensorMapEncodeTiled");
}

template <class Tile>
Status launch_tf32(const ConvolutionPlan& plan, const Tf32Inputs& inputs, Tf32Task task, const CudaContext& context) {
  CUtensorMap x_map;
  CUtensorMap weight_map;
  if (Status status = make_maps(plan, inputs, Tile::rows, x_map, weight_map); !status.ok()) return status;
  task.row_tiles = static_cast<int>(ceil_divide(plan.outputs, Tile::rows));
  const Grid grid{.blocks = ceil_divide(task.pixels, tf32_columns) * task.row_tiles,
                  .threads = tf32_threads,
                  .cluster = 1,
                  .shared_bytes = Tile::shared_bytes};
  return launch("Convolution wgmma_tf32", tf32_product<Tile>, grid, context, x_map, weight_map, task);
}
#endif

}  // namespace

Status wgmma_tf32_fits(const Convolution& op, const Problem& problem) {
  if (!op.allow_tf32) return unsupported("supports only allow_tf32 = 1");
  if (problem.inputs[Convolution::x].dtype != DType::f32) return unsupported("supports f32");
  if (op.group != 1) return unsupported("supports one group, found " + std::to_string(op.group));
  const ConvolutionPlan plan = plan_convolution(op, problem);
  const auto& [depth, height, width] = plan.axis;
  if (depth.in != 1 || depth.kernel != 1 || depth.out != 1) return unsupported("supports 1 or 2 spatial axes");
  constexpr std::int64_t fewest = 8;
  if (plan.channels < fewest) return unsupported("supports at least " + std::to_string(fewest) + " channels");
  // The limits of the fields of a tensor map.
  constexpr std::int64_t most_corner = 127;
  constexpr std::int64_t most_reach = 255;
  constexpr std::int64_t most_stride = 8;
  constexpr std::int64_t most = std::numeric_limits<int>::max() / 4;
  for (const ConvolutionAxis& axis : {height, width}) {
    const std::int64_t end = (axis.out - 1) * axis.stride - axis.pad + 1 - axis.in;
    if (axis.stride > most_stride || axis.pad > most_corner || end > most_corner || end < -most_corner ||
        (axis.kernel - 1) * axis.dilation > most_reach) {
      return unsupported(
          "supports strides of up to 8, padding of up to 127, and windows that span at most 256 elements and at most "
          "128 more than the padding");
    }
  }
  if (plan.batch * plan.out_pixels() > most || plan.batch * plan.channels > most ||
      plan.outputs * plan.channels > most || plan.in_pixels() > most || plan.window() * plan.channels > most) {
    return unsupported("supports up to " + std::to_string(most) + " pixels, and as many products per sum");
  }
#if GRAFT_SM90A
  return {};
#else
  return unsupported("needs code for compute capability 9.0, which this build does not have");
#endif
}

Status wgmma_tf32_run(const Convolution& op, const Problem& problem, const Buffers& buffers,
                      const CudaContext& context) {
#if GRAFT_SM90A
  const TensorDesc& to = problem.outputs[0];
  if (to.extents.element_count() == 0) return {};
  const ConvolutionPlan plan = plan_convolution(op, problem);
  const auto& [depth, height, width] = plan.axis;
  const bool linear = to.layout == Layout::linear;
  const std::int64_t vector = linear ? 4 : channels_per_vector(to.layout);
  Tf32Inputs inputs{.x = const_cast<void*>(buffers.inputs[Convolution::x]),  // The kernel only reads x.
                    .weight = const_cast<void*>(buffers.inputs[Convolution::weight]),
                    .pixel_bytes = ceil_divide(plan.channels, vector) * vector * 4};
  if (linear) {
    const Repacked repacked = Repacked::of(plan, problem, buffers);
    if (Status status = repacked.run(context); !status.ok()) return status;
    inputs.x = repacked.x.to;
    inputs.weight = repacked.weight.to;
  } else if (!is_aligned(inputs.x, 16) || !is_aligned(inputs.weight, 16)) {
    return invalid_argument("Convolution: the addresses of hwc8 tensors must be multiples of 16");
  }
  DeviceTraits device;
  if (Status status = current_device(device); !status.ok()) return status;
  const auto as_int = [](std::int64_t value) { return static_cast<int>(value); };
  auto* const y = static_cast<float*>(buffers.outputs[0]);
  const Tf32Task task{.bias = static_cast<const float*>(buffers.inputs[Convolution::bias]),
                      .y = y,
                      .epilogue = ConvolutionEpilogue::of(op, DType::f32),
                      .pixels = as_int(plan.batch * plan.out_pixels()),
                      .image_pixels = as_int(plan.out_pixels()),
                      .width = as_int(width.out),
                      .height = as_int(height.out),
                      .outputs = as_int(plan.outputs),
                      .stride_w = as_int(width.stride),
                      .stride_h = as_int(height.stride),
                      .pad_w = as_int(width.pad),
                      .pad_h = as_int(height.pad),
                      .dilation_w = as_int(width.dilation),
                      .dilation_h = as_int(height.dilation),
                      .taps_w = as_int(width.kernel),
                      .chunks_of_tap = as_int(ceil_divide(plan.channels, tf32_chunk)),
                      .stages = as_int(plan.window() * ceil_divide(plan.channels, tf32_chunk)),
                      .row_tiles = 0,
                      .stored_outputs = linear ? 0 : as_int(ceil_divide(plan.outputs, vector) * vector),
                      .pairs = plan.out_pixels() % 2 == 0 && is_aligned(y, sizeof(float2)),
                      .by_image = Divisor(as_int(plan.out_pixels()))};
  // Tiles of 64 rows waste less work if there are few channels, and there are more of them where tiles of 128 rows
  // would leave multiprocessors idle.
  const std::int64_t tiles = ceil_divide(task.pixels, tf32_columns) * ceil_divide(plan.outputs, 128);
  if (plan.outputs <= 64 || tiles < device.multiprocessors) {
    return launch_tf32<Tf32Tile<64>>(plan, inputs, task, context);
  }
  return launch_tf32<Tf32Tile<128>>(plan, inputs, task, context);
#else
  static_cast<void>(buffers);
  static_cast<void>(context);
  return wgmma_tf32_fits(op, problem);
#endif
}

}  // namespace graft::ops

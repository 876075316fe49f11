// Linear upsampling by exactly two along rows and columns, where neighbors follow from the index: output 2k lies
// between inputs k - 1 and k, output 2k + 1 between k and k + 1. A thread visits R rows of the input. It interpolates
// each of them along the row once, for the two output rows above and the two below.
#pragma once

#include "ops/upsampling/task.cuh"

namespace graft::ops {
namespace detail {

inline constexpr int upsample_2x_threads = 128;

/// The distance of outputs 2k and 2k + 1 from the first of their two neighbors, as affine functions of k.
struct Upsample2xWeights {
  float even_step;
  float even;
  float odd_step;
  float odd;

  [[nodiscard]] static Upsample2xWeights make(const SampledAxis& axis, CoordinateMode mode) {
    if (mode == CoordinateMode::half_pixel) return {0.F, 0.75F, 0.F, 0.25F};
    // align_corners: the distance is (2k + i) * (in - 1) / (2 in - 1), minus k - 1 or k
    const double span = static_cast<double>(2 * axis.in - 1);
    return {static_cast<float>(-1 / span), 1.F, static_cast<float>(-1 / span),
            static_cast<float>(static_cast<double>(axis.in - 1) / span)};
  }
  /// Returns the weight of the second neighbor of output 2k. At the edge both neighbors are the same element, with
  /// equal weights. With a weight of 0, an infinite element would yield NaN.
  [[nodiscard]] __device__ float even_at(int k) const {
    return k == 0 ? 0.5F : fmaf(static_cast<float>(k), even_step, even);
  }
  [[nodiscard]] __device__ float odd_at(int k, int in) const {
    return k + 1 == in ? 0.5F : fmaf(static_cast<float>(k), odd_step, odd);
  }
};

struct Upsample2xTask {
  UpsamplingTask task;
  Upsample2xWeights along_y;
  Upsample2xWeights along_x;
};

/// The indices of the output that a thread computes. The rows of two planes may be computed in one warp, and `live` is
/// false for threads of the last block that have nothing to compute.
struct Upsample2xShare {
  std::int64_t plane;
  int group;
  int first;  ///< The first row of the input.
  bool live;

  [[nodiscard]] __device__ static Upsample2xShare of_thread(const UpsamplingTask& task) {
    const unsigned item = blockIdx.x * upsample_2x_threads + threadIdx.x;
    const auto items = static_cast<unsigned>(task.items);
    const Share share = Share::quick(::min(item, items - 1), task);
    return {share.plane, static_cast<int>(share.group), share.strip * task.rows, item < items};
  }
};

/// Computes the output of K columns of one channel of x. If Shuffled is true, every row lies within a warp, so that a
/// thread gets neighboring elements from other lanes.
template <class T, int K, bool Shuffled>
class Upsample2xColumns {
 public:
  static constexpr int results = 2 * K;  ///< The number of results in a row.
  static constexpr int pieces = 1;       ///< The number of contiguous pieces of the results.
  struct Loaded {
    Vector<T, K> middle;
    T left;
    T right;
  };

  __device__ Upsample2xColumns(const T* x, T* y, const Upsample2xTask& upsample_2x, const Upsample2xShare& share)
      : in_row_(static_cast<int>(upsample_2x.task.in_row)),
        out_row_(static_cast<int>(upsample_2x.task.out_row)),
        ratio_(upsample_2x.task.ratio) {
    const UpsamplingTask& task = upsample_2x.task;
    const int column = share.group * K;
    is_first_ = column == 0;
    is_last_ = column + K == task.x.in;
    x_ = x + share.plane * task.y.in * task.in_row + column;
    y_ = y + (share.plane * task.y.in + share.first) * 2 * task.out_row + 2 * column;
#pragma unroll
    for (int i = 0; i < K; ++i) {
      second_[2 * i] = upsample_2x.along_x.even_at(column + i);
      second_[2 * i + 1] = upsample_2x.along_x.odd_at(column + i, task.x.in);
    }
    if constexpr (is_i8 && Shuffled) {  // The number from another row, which is finite, then has weight 0.
      if (is_first_) second_[0] = 1.F;
      if (is_last_) second_[results - 1] = 0.F;
    }
  }

  [[nodiscard]] __device__ Loaded load(int row) const {
    const T* address = x_ + static_cast<std::int64_t>(row) * in_row_;
    Loaded loaded;
    loaded.middle = Vector<T, K>::load(address);
    if constexpr (!Shuffled) {
      loaded.left = address[is_first_ ? 0 : -1];
      loaded.right = address[is_last_ ? K - 1 : K];
    }
    return loaded;
  }

  __device__ void along_row(const Loaded& loaded, float (&now)[results]) const {
    float values[K + 2];
    {
      float middle[K];
      loaded.middle.unpack(middle);
#pragma unroll
      for (int i = 0; i < K; ++i) values[i + 1] = scaled(middle[i]);
    }
    if constexpr (Shuffled) {
      constexpr unsigned whole_warp = 0xFFFFFFFFU;
      const float left = __shfl_up_sync(whole_warp, values[K], 1);
      const float right = __shfl_down_sync(whole_warp, values[1], 1);
      values[0] = is_first_ && !is_i8 ? values[1] : left;
      values[K + 1] = is_last_ && !is_i8 ? values[K] : right;
    } else {
      values[0] = scaled(static_cast<float>(loaded.left));
      values[K + 1] = scaled(static_cast<float>(loaded.right));
    }
#pragma unroll
    for (int i = 0; i < results; ++i) {
      const int a = (i + 1) / 2;
      now[i] = between<is_i8>(values[a], values[a + 1], second_[i]);
    }
  }

  __device__ void store(int row, int /*piece*/, const float (&values)[results]) const {
    Vector<T, results>::pack(values).store_streaming(y_ + static_cast<std::int64_t>(row) * out_row_);
  }

 private:
  static constexpr bool is_i8 = std::is_same_v<T, std::int8_t>;
  [[nodiscard]] __device__ float scaled(float value) const { return is_i8 ? value * ratio_ : value; }

  const T* x_;
  T* y_;
  int in_row_;
  int out_row_;
  float ratio_;
  bool is_first_;
  bool is_last_;
  float second_[results];  ///< The weights of the second neighbor.
};

/// Computes the output of V channels of one column of x, in channel-vector layouts.
template <class T, int V>
class Upsample2xChannels {
 public:
  static constexpr int results = 2 * V;
  static constexpr int pieces = 2;
  struct Loaded {
    Vector<T, V> columns[3];
  };

  __device__ Upsample2xChannels(const T* x, T* y, const Upsample2xTask& upsample_2x, const Upsample2xShare& share)
      : in_row_(static_cast<int>(upsample_2x.task.in_row)),
        out_row_(static_cast<int>(upsample_2x.task.out_row)),
        pitch_(upsample_2x.task.pitch),
        ratio_(upsample_2x.task.ratio) {
    const UpsamplingTask& task = upsample_2x.task;
    const int column = static_cast<int>(task.by_parts(static_cast<unsigned>(share.group)));
    const int channel = (share.group - column * task.parts) * V;
    channels_left_ = task.channels_from(share.plane, channel);
    x_ = x + share.plane * task.y.in * task.in_row + channel;
    y_ = y + (share.plane * task.y.in + share.first) * 2 * task.out_row + 2LL * column * pitch_ + channel;
#pragma unroll
    for (int i = 0; i < 3; ++i) columns_[i] = ::min(::max(column + i - 1, 0), task.x.in - 1) * pitch_;
    even_ = upsample_2x.along_x.even_at(column);
    odd_ = upsample_2x.along_x.odd_at(column, task.x.in);
  }

  [[nodiscard]] __device__ Loaded load(int row) const {
    const T* address = x_ + static_cast<std::int64_t>(row) * in_row_;
    Loaded loaded;
#pragma unroll
    for (int i = 0; i < 3; ++i) loaded.columns[i] = Vector<T, V>::load(address + columns_[i]);
    return loaded;
  }

  __device__ void along_row(const Loaded& loaded, float (&now)[results]) const {
    float values[3][V];
#pragma unroll
    for (int i = 0; i < 3; ++i) loaded.columns[i].unpack(values[i]);
#pragma unroll
    for (int v = 0; v < V; ++v) {
      now[v] = scaled(between<is_i8>(values[0][v], values[1][v], even_));
      now[V + v] = scaled(between<is_i8>(values[1][v], values[2][v], odd_));
    }
  }

  __device__ void store(int row, int piece, const float (&values)[V]) const {
    T* address = y_ + static_cast<std::int64_t>(row) * out_row_ + piece * pitch_;
    Vector<T, V>::pack(values).first(channels_left_).store_streaming(address);
  }

 private:
  static constexpr bool is_i8 = std::is_same_v<T, std::int8_t>;
  [[nodiscard]] __device__ float scaled(float value) const { return is_i8 ? value * ratio_ : value; }

  const T* x_;
  T* y_;
  int in_row_;
  int out_row_;
  int pitch_;
  float ratio_;
  int channels_left_;
  int columns_[3];
  float even_;
  float odd_;
};

/// Returns the number of blocks of `threads` threads that the compiler should fit on a multiprocessor (the second
/// argument of __launch_bounds__): `wanted`, or fewer if the target GPU has no room for them, because ptxas refuses
/// more.
[[nodiscard]] constexpr int resident_blocks(int threads, int wanted) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ < 800
  constexpr int most = 1024;
#elif defined(__CUDA_ARCH__) && __CUDA_ARCH__ != 800 && (__CUDA_ARCH__ < 900 || __CUDA_ARCH__ >= 1200)
  constexpr int most = 1536;
#else
  constexpr int most = 2048;
#endif
  return wanted * threads <= most ? wanted : most / threads;
}

/// Upsamples R rows of x per thread. Blocks is the number of blocks that should fit on a multiprocessor; Ahead is the
/// number of rows that are loaded before they are needed.
template <class T, class Cells, int R, int Ahead, int Blocks>
__global__ void __launch_bounds__(upsample_2x_threads, resident_blocks(upsample_2x_threads, Blocks))
    upsample_2x_linear(const T* x, T* y, const Upsample2xTask upsample_2x) {
  constexpr bool is_i8 = std::is_same_v<T, std::int8_t>;
  constexpr int E = Cells::results;
  const UpsamplingTask& task = upsample_2x.task;
  const int height = task.y.in;
  const Upsample2xShare share = Upsample2xShare::of_thread(task);
  const Cells cells(x, y, upsample_2x, share);
  const auto load = [&](int j) { return cells.load(::min(::max(share.first + j - 1, 0), height - 1)); };

  typename Cells::Loaded loaded[Ahead];
#pragma unroll
  for (int j = 0; j < Ahead; ++j) loaded[j] = load(j);
  float held[2][E];
#pragma unroll
  for (int j = 0; j < R + 2; ++j) {
    float(&now)[E] = held[j % 2];
    const float(&previous)[E] = held[1 - j % 2];
    cells.along_row(loaded[j % Ahead], now);
    if (j + Ahead < R + 2) loaded[j % Ahead] = load(j + Ahead);
    if (j == 0) continue;
    const int k = share.first + j - 1;  // this row
    const float odd = upsample_2x.along_y.odd_at(k - 1, height);
    const float even = upsample_2x.along_y.even_at(k);
    const bool has_upper = j >= 2 && k - 1 < height && share.live;
    const bool has_lower = j <= R && k < height && share.live;
#pragma unroll
    for (int piece = 0; piece < Cells::pieces; ++piece) {
      float upper[E / Cells::pieces];
      float lower[E / Cells::pieces];
#pragma unroll
      for (int i = 0; i < E / Cells::pieces; ++i) {
        const int e = piece * (E / Cells::pieces) + i;
        upper[i] = between<is_i8>(previous[e], now[e], odd);
        lower[i] = between<is_i8>(previous[e], now[e], even);
      }
      if (has_upper) cells.store(2 * j - 3, piece, upper);
      if (has_lower) cells.store(2 * j - 2, piece, lower);
    }
  }
}

}  // namespace detail
}  // namespace graft::ops

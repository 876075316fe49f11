// The CUDA variants of Convolution, best first.
#include "ops/convolution/variants.hpp"

namespace graft::ops {
namespace {

/// A wgmma variant that uses tiles of one shape. TensorRT times these variants in addition to `wgmma`, which chooses
/// the shape by an estimate.
template <int M, int N, bool Gathered>
struct WgmmaTiles {
  static constexpr WgmmaShape shape{M, N, Gathered};
  static Status fits(const Convolution& op, const Problem& problem) { return wgmma_fits(op, problem, shape); }
  static Status run(const Convolution& op, const Problem& problem, const Buffers& buffers, const CudaContext& context) {
    return wgmma_run(op, problem, buffers, context, shape);
  }
};
template <int M, int N = 0, bool Gathered = false>
constexpr Variant<Convolution> wgmma_tiles(std::string_view name) {
  using Tiles = WgmmaTiles<M, N, Gathered>;
  return {name, Tiles::fits, Tiles::run, 90};
}

}  // namespace

std::span<const Variant<Convolution>> cuda_kernels(const Convolution& /*op*/) {
  static constexpr std::array variants{
      Variant<Convolution>{"depthwise", depthwise_fits, depthwise_run},
      Variant<Convolution>{"few_channels", few_channels_fits, few_channels_run},
      Variant<Convolution>{"few_channels_linear", few_channels_linear_fits, few_channels_linear_run},
      Variant<Convolution>{"few_outputs", few_outputs_fits, few_outputs_run},
      Variant<Convolution>{"grouped", grouped_fits, grouped_run},
      wgmma_tiles<0>("wgmma"),
      wgmma_tiles<256, 128>("wgmma_256x128"),
      wgmma_tiles<256, 96>("wgmma_256x96"),
      wgmma_tiles<128, 256>("wgmma_128x256"),
      wgmma_tiles<128, 128>("wgmma_128x128"),
      wgmma_tiles<128, 96>("wgmma_128x96"),
      wgmma_tiles<128, 64>("wgmma_128x64"),
      wgmma_tiles<64, 128>("wgmma_64x128"),
      wgmma_tiles<64, 64>("wgmma_64x64"),
      wgmma_tiles<WgmmaShape::patches>("wgmma_patches"),
      wgmma_tiles<128, 128, true>("wgmma_gathered_128x128"),
      wgmma_tiles<128, 64, true>("wgmma_gathered_128x64"),
      Variant<Convolution>{"repacked", repacked_fits, repacked_run, 90},
      Variant<Convolution>{"tensor_core", tensor_core_fits, tensor_core_run},
      Variant<Convolution>{"wgmma_tf32", wgmma_tf32_fits, wgmma_tf32_run, 90},
      Variant<Convolution>{"tf32", tf32_fits, tf32_run},
      Variant<Convolution>{"f32", f32_fits, f32_run},
      Variant<Convolution>{"direct", direct_fits, direct_run}};
  return variants;
}

}  // namespace graft::ops

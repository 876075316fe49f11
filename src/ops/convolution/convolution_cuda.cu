// CUDA kernels of Convolution: the variants, best first.
#include "ops/convolution/variants.hpp"

namespace graft {

std::span<const Variant<Convolution>> cuda_kernels(const Convolution& /*op*/) {
  static constexpr std::array variants{Variant<Convolution>{"depthwise", depthwise_fits, depthwise_run},
                                       Variant<Convolution>{"few_channels", few_channels_fits, few_channels_run},
                                       Variant<Convolution>{"grouped", grouped_fits, grouped_run},
                                       Variant<Convolution>{"wgmma", wgmma_fits, wgmma_run, 90},
                                       Variant<Convolution>{"repacked", repacked_fits, repacked_run, 90},
                                       Variant<Convolution>{"tensor_core", tensor_core_fits, tensor_core_run},
                                       Variant<Convolution>{"wgmma_tf32", wgmma_tf32_fits, wgmma_tf32_run, 90},
                                       Variant<Convolution>{"tf32", tf32_fits, tf32_run},
                                       Variant<Convolution>{"f32", f32_fits, f32_run},
                                       Variant<Convolution>{"direct", direct_fits, direct_run}};
  return variants;
}

}  // namespace graft

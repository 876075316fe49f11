// The rounding noise of an engine that has none, from one that has.
#pragma once

#include <memory>

#include "runtime/engine.hpp"

namespace graft::runtime {

/// A model that returns the numbers of `still`, moved by the difference between `noisy` and `noiseless`, which are the
/// same model in another engine: what the two engines compute differently without noise is no noise. An integer that
/// the noise changes becomes that of `noisy`, as does a tensor whose dimensions it changes.
[[nodiscard]] std::unique_ptr<CompiledModel> move_by_noise(std::unique_ptr<CompiledModel> still,
                                                           std::unique_ptr<CompiledModel> noiseless,
                                                           std::unique_ptr<CompiledModel> noisy);

}  // namespace graft::runtime

// An engine for fuzzing, which covers passes and proofs but not the computation.
#pragma once

#include "runtime/engine.hpp"

namespace graft::fuzz {

/// Returns an engine whose outputs are zeros of the inferred sizes, so that rewrites count as proven wherever shapes
/// are known. It refuses models with unknown or large inputs or outputs.
[[nodiscard]] const runtime::Engine& zero_engine();

}  // namespace graft::fuzz

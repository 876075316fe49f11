// An engine for fuzzing: passes and proofs are what is fuzzed, not what computes.
#pragma once

#include "runtime/engine.hpp"

namespace graft::fuzz {

/// Gives zeros of the sizes that shape inference finds, so that rewrites count as proven wherever shapes are known.
/// Refuses what has unknown or large tensors at its ends.
[[nodiscard]] const runtime::Engine& zero_engine();

}  // namespace graft::fuzz

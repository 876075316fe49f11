// The engine of a build that has no CPU engine.
#pragma once

#include "runtime/engine.hpp"

namespace graft::runtime {

/// Returns an engine that refuses every model with Error::Kind::missing_tool and explains how to get an engine.
[[nodiscard]] const Engine& null_engine();

}  // namespace graft::runtime

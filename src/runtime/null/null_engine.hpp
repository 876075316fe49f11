// The engine of a build that has none.
#pragma once

#include "runtime/engine.hpp"

namespace graft::runtime {

/// Refuses every model with Error::Kind::missing_tool and says how to get an engine.
[[nodiscard]] const Engine& null_engine();

}  // namespace graft::runtime

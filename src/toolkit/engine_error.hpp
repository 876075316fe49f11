// What the engine driver throws, for programs that show more of it than its text.
#pragma once

#include "engine/driver.hpp"

namespace graft::toolkit {

using graft::engine::EngineError;
using graft::engine::Interrupted;

}  // namespace graft::toolkit

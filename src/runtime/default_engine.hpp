// The engine that this build of Graft has.
#pragma once

#include "runtime/engine.hpp"

namespace graft::runtime {

/// OpenVINO. In a build without it: the engine of the worker program that the environment variable GRAFT_ENGINE_WORKER
/// names, or null_engine() where it names none. Programs and tests choose it; libraries are given an engine.
[[nodiscard]] const Engine& default_engine();

}  // namespace graft::runtime

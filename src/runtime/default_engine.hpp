// The CPU engine of this installation of Graft.
#pragma once

#include "runtime/engine.hpp"

namespace graft::runtime {

/// Returns OpenVINO in a separate process. If a model crashes OpenVINO, only that process ends. The process runs the
/// file named by the environment variable GRAFT_ENGINE_WORKER, or else libexec/graft_engine_worker of this
/// installation. If neither exists, as in a build without OpenVINO, returns null_engine(). Only programs and tests call
/// this function; libraries receive an engine from their caller.
[[nodiscard]] const Engine& default_engine();

}  // namespace graft::runtime

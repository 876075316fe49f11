// The engine that this installation of Graft has.
#pragma once

#include "runtime/engine.hpp"

namespace graft::runtime {

/// OpenVINO, in a process of its own: a model that makes it crash ends that process alone. The program is the file that
/// the environment variable GRAFT_ENGINE_WORKER names, or libexec/graft_engine_worker of this installation. Where there
/// is neither, as in a build without OpenVINO: null_engine(). Programs and tests call this; libraries are given an
/// engine.
[[nodiscard]] const Engine& default_engine();

}  // namespace graft::runtime

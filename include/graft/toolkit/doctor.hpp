// Determines which engines, libraries and tools are installed.
#pragma once

#include "graft/report/doctor.hpp"
#include "graft/toolkit/export.hpp"
#include "graft/toolkit/progress.hpp"

namespace graft::toolkit {

using report::DoctorReport;
using report::Finding;

/// The options of `diagnose`.
struct DoctorOptions {
  LogCallback on_log = {};  ///< Called with the command and each message of the process that looks for TensorRT.
  Watch watch = {};
};

/// Starts each engine, and searches for Python, TensorRT, GPUs and compilers in a child process. A missing tool is a
/// finding and does not throw.
///
/// Throws EngineError where the machine has too few resources for the child process, and Error (bad_input) where
/// GRAFT_PYTHON of the environment is not a program, because neither shows what is installed; Cancelled.
[[nodiscard]] GRAFT_API DoctorReport diagnose(const DoctorOptions& options = {});

}  // namespace graft::toolkit

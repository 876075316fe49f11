// Finds out which engines, libraries and tools are installed.
#pragma once

#include "graft/report/doctor.hpp"
#include "toolkit/plugins.hpp"

namespace graft::toolkit {

/// Starts each engine, asks the driver for TensorRT, GPUs and compilers, and returns what was found. Throws the errors
/// of `ask` that do not show what is installed.
[[nodiscard]] report::DoctorReport diagnose(const AskDriver& ask);

}  // namespace graft::toolkit

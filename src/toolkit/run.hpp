// Reads a network for given inputs and runs it once.
#pragma once

#include <string>
#include <vector>

#include "graft/toolkit/cpu_engine.hpp"
#include "runtime/engine.hpp"
#include "toolkit/model_files.hpp"

namespace graft::toolkit {

struct RunReport {
  runtime::TensorMap outputs;
  double seconds = 0;                 ///< The time of the run, without reading and compiling.
  std::string ran_in;                 ///< The CPU engine: "ONNX Runtime 1.31.1".
  std::vector<std::string> left_out;  ///< Why it is not the first choice, and known wrong results of the engine.
};

/// Reads the network, other formats than ONNX with the shapes of the inputs, and runs it on the CPU. Throws the errors
/// of `load` and Session.
[[nodiscard]] RunReport run_files(const ModelFiles& files, const runtime::TensorMap& inputs,
                                  runtime::OperatorKernels kernels, int threads, CpuEngine engine);

}  // namespace graft::toolkit

// One run of a network that is read for these inputs.
#pragma once

#include <string>
#include <vector>

#include "graft/toolkit/cpu_engine.hpp"
#include "runtime/engine.hpp"
#include "toolkit/model_files.hpp"

namespace graft::toolkit {

struct RunReport {
  runtime::TensorMap outputs;
  double seconds = 0;                 ///< Of the run alone.
  std::string ran_in;                 ///< The CPU engine: "ONNX Runtime 1.31.1".
  std::vector<std::string> left_out;  ///< Why it is not the engine that comes first, and what it is known for.
};

/// Reads the network, other formats than ONNX with the shapes of the inputs, and runs it on the CPU. Throws Error as
/// `load` and Session do.
[[nodiscard]] RunReport run_files(const ModelFiles& files, const runtime::TensorMap& inputs,
                                  runtime::OperatorKernels kernels, int threads, CpuEngine engine);

}  // namespace graft::toolkit

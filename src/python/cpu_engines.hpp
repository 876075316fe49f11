// The engines that run models on the CPU, by name.
#pragma once

#include <string>

#include "graft/toolkit/cpu_engine.hpp"
#include "graft/toolkit/error.hpp"

namespace graft::python {

[[nodiscard]] inline toolkit::CpuEngine cpu_engine_of(const std::string& word) {
  if (word == "auto") return toolkit::CpuEngine::automatic;
  if (word == "openvino") return toolkit::CpuEngine::openvino;
  if (word == "onnxruntime") return toolkit::CpuEngine::onnxruntime;
  if (word == "both") return toolkit::CpuEngine::both;
  throw Error("engine: found " + word + "; allowed are auto, openvino, onnxruntime and both");
}

}  // namespace graft::python

// What is installed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "engine/plugin_library.hpp"
#include "toolkit/plugins.hpp"

namespace graft::toolkit {

struct Diagnosis {
  std::string cpu_engine;         ///< "OpenVINO 2026.4.1"; empty in a build without one.
  std::string cpu_engine_error;   ///< Why there is none, where its process did not start.
  std::string onnxruntime;        ///< "ONNX Runtime 1.31.1"; empty where it cannot be started.
  std::string onnxruntime_error;  ///< Why not.
  engine::PluginLibrary plugin_library;
  std::uint64_t plugin_library_bytes = 0;
  std::size_t operators = 0;
  bool with_cuda = false;  ///< Whether this build makes the plugin library.
  std::string cuda_compiler;
  std::vector<std::string> cuda_architectures;  ///< As cuda_architectures() gives them.
  std::string tensorrt_headers;
  /// What the engine driver found: "python", "flavors" of TensorRT, "cuda". Null where it does not run.
  nlohmann::ordered_json driver;
  std::string driver_error;  ///< Why not.
};

[[nodiscard]] Diagnosis diagnose(const AskDriver& ask);

}  // namespace graft::toolkit

// Finds out which engines, libraries and tools are installed.
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
  std::string cpu_engine_error;   ///< Why its process did not start; empty where it did.
  std::string onnxruntime;        ///< "ONNX Runtime 1.31.1"; empty where it does not start.
  std::string onnxruntime_error;  ///< Why ONNX Runtime does not start; empty where it does.
  engine::PluginLibrary plugin_library;
  std::uint64_t plugin_library_bytes = 0;
  std::size_t operators = 0;
  bool with_cuda = false;  ///< Whether this build includes the plugin library.
  std::string cuda_compiler;
  std::vector<std::string> cuda_architectures;  ///< See cuda_architectures().
  std::string tensorrt_headers;
  /// The result of the engine driver's command `probe`: "python", "flavors" of TensorRT, "cuda". Null where the driver
  /// does not run.
  nlohmann::ordered_json driver;
  std::string driver_error;  ///< Why the driver does not run; empty where it does.
};

[[nodiscard]] Diagnosis diagnose(const AskDriver& ask);

}  // namespace graft::toolkit

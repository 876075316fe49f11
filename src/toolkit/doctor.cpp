// `diagnose`: starts each engine and records its version, or why it does not start.
#include "toolkit/doctor.hpp"

#include <filesystem>
#include <system_error>

#include "graft/error.hpp"
#include "graft/registry.hpp"
#include "runtime/default_engine.hpp"
#include "toolkit/cpu_engines.hpp"
#include "toolkit/cuda_architectures.hpp"

namespace graft::toolkit {

Diagnosis diagnose(const AskDriver& ask) {
  Diagnosis found;
  const runtime::Engine& engine = runtime::default_engine();
  try {
    if (engine.can_run()) found.cpu_engine = engine.name();
  } catch (const Error& error) {
    found.cpu_engine_error = error.what();
  }
  try {
    found.onnxruntime = engine_of(CpuEngine::onnxruntime, Purpose::values).name();
  } catch (const Error& error) {
    found.onnxruntime_error = error.what();
  }
  found.plugin_library = engine::own_plugin_library();
  std::error_code ignored;
  if (found.plugin_library.exists) {
    found.plugin_library_bytes = std::filesystem::file_size(found.plugin_library.path, ignored);
  }
  found.operators = operators().size();
#if GRAFT_WITH_CUDA
  found.with_cuda = true;
  found.cuda_compiler = GRAFT_CUDA_VERSION;
  found.cuda_architectures = cuda_architectures();
  found.tensorrt_headers = GRAFT_TENSORRT_VERSION;
#endif
  try {
    found.driver = ask({"probe"});
  } catch (const EngineError& error) {
    if (error.failure().kind == "resource") throw;  // the error does not show whether TensorRT is installed
    found.driver_error = error.failure().message;
  } catch (const Error& error) {
    if (error.kind() == Error::Kind::bad_input) throw;
    found.driver_error = error.what();
  }
  return found;
}

}  // namespace graft::toolkit

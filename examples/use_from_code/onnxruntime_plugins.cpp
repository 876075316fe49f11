// For ONNX Runtime's TensorRT provider: a library that loads Graft's plugins into TensorRT's registry when it is
// loaded.
//
// The provider opens the libraries of trt_extra_plugin_lib_paths and expects each to register itself. Graft's library
// links no TensorRT, so that one file serves all versions; it leaves that to whoever loads it.
#include <NvInferRuntime.h>

#include <cstdlib>

namespace {

[[maybe_unused]] const bool loaded = [] {
  const char* path = std::getenv("GRAFT_PLUGIN_LIBRARY");
  return getPluginRegistry()->loadLibrary(path != nullptr ? path : "libgraft_plugins.so") != nullptr;
}();

}  // namespace

// A library for ONNX Runtime's TensorRT provider. When it is loaded, it loads Graft's plugins into TensorRT's registry.
//
// The provider opens the libraries of trt_extra_plugin_lib_paths and expects each to register itself. Graft's plugin
// library links no TensorRT, so that one file works with all versions, and therefore cannot register itself.
#include <NvInferRuntime.h>

#include <cstdlib>

namespace {

[[maybe_unused]] const bool loaded = [] {
  const char* path = std::getenv("GRAFT_PLUGIN_LIBRARY");
  return getPluginRegistry()->loadLibrary(path != nullptr ? path : "libgraft_plugins.so") != nullptr;
}();

}  // namespace

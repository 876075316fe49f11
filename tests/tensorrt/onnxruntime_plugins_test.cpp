// Tests the library for ONNX Runtime's TensorRT provider with a stand-in for TensorRT's registry.
#include <dlfcn.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <string>

#include "stub_interfaces.hpp"

namespace {

class Registry final : public nvinfer1::StubIPluginRegistry {
 public:
  PluginLibraryHandle loadLibrary(const char* path) noexcept override {
    loaded += path;
    return this;
  }
  std::string loaded;
};

Registry& registry() {
  static Registry instance;
  return instance;
}

}  // namespace

/// A replacement of TensorRT's function, which the library calls.
extern "C" __attribute__((visibility("default"))) nvinfer1::IPluginRegistry* getPluginRegistry() noexcept {
  return &registry();
}

TEST(OnnxRuntimePlugins, PutsGraftsLibraryIntoTheRegistryWhenItIsOpened) {
  void* handle = dlopen(ONNXRUNTIME_PLUGINS, RTLD_NOW);
  ASSERT_NE(handle, nullptr) << dlerror();
  EXPECT_EQ(registry().loaded, std::getenv("GRAFT_PLUGIN_LIBRARY"));
  dlclose(handle);
}

// A library with alternative names: creators under the names of other libraries' plugins (libgraft_stand_ins.so) or of
// standard ONNX operators (libgraft_onnx.so), depending on GRAFT_CREATORS. The plugin library in the same folder
// creates the creators.
//
// TensorRT refuses a whole library if one of its names is already registered. These names are therefore not in the
// plugin library itself, and names that are already in use are omitted:
//   - the names in the environment variable GRAFT_LEAVE_OUT, separated by commas, if it is set;
//   - otherwise the names of NVIDIA's standard plugins, if their library is loaded in this process.
// The code does not query TensorRT's registry, because its binary interface differs between versions.
#include <NvInferRuntime.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdlib>
#include <list>
#include <mutex>
#include <string_view>
#include <vector>

#include "adapters/tensorrt/exports.hpp"
#include "adapters/tensorrt/loaded_library.hpp"

namespace {

std::atomic<nvinfer1::ILoggerFinder*> logger_finder = nullptr;

/// The names of NVIDIA's standard plugins for which this library has creators, from NVIDIA's sources of TensorRT 10.0
/// to 11.1. The two deformable operators are listed for 11.x although its sources were not checked for them. If a
/// creator is omitted without need, the user only gets an error message; if the name of a creator is already in use,
/// TensorRT refuses the whole library.
constexpr std::array standard_10 = {"InstanceNormalization_TRT",          "LReLU_TRT",     "ModulatedDeformConv2d",
                                    "MultiscaleDeformableAttnPlugin_TRT", "Normalize_TRT", "ResizeNearest_TRT"};
constexpr std::array standard_11 = {"InstanceNormalization_TRT", "ModulatedDeformConv2d",
                                    "MultiscaleDeformableAttnPlugin_TRT", "ResizeNearest_TRT"};

bool is_listed(std::string_view list, std::string_view name) {
  while (!list.empty()) {
    const std::size_t end = std::min(list.find(','), list.size());
    if (list.substr(0, end) == name) return true;
    list.remove_prefix(std::min(end + 1, list.size()));
  }
  return false;
}

template <class Names>
bool holds(const Names& names, std::string_view name) {
  for (const std::string_view each : names) {
    if (each == name) return true;
  }
  return false;
}

bool is_taken(std::string_view name) {
  if (const char* list = std::getenv("GRAFT_LEAVE_OUT"); list != nullptr) return is_listed(list, name);
  if (holds(standard_11, name) && graft::tensorrt::is_loaded("libnvinfer_plugin.so")) return true;
  return holds(standard_10, name) && graft::tensorrt::is_loaded("libnvinfer_plugin.so.10");
}

}  // namespace

GRAFT_EXPORT void setLoggerFinder(nvinfer1::ILoggerFinder* finder) { logger_finder = finder; }

/// Returns the creators whose names no standard plugin uses, and sets `count` to their number. Each load computes a new
/// list, because other plugin libraries may have been loaded since. Earlier lists stay valid, because another thread
/// may still read them.
GRAFT_EXPORT nvinfer1::IPluginCreatorInterface* const* getCreators(std::int32_t& count) {
  static std::mutex mutex;
  static std::list<std::vector<nvinfer1::IPluginCreatorInterface*>> answers;
  count = 0;
  try {
    const std::lock_guard lock(mutex);
    std::int32_t known = 0;
    nvinfer1::IPluginCreatorInterface* const* creators = GRAFT_CREATORS(logger_finder, known);
    std::vector<nvinfer1::IPluginCreatorInterface*>& free_names = answers.emplace_back();
    for (std::int32_t i = 0; i < known; ++i) {
      const auto* creator = static_cast<const nvinfer1::IPluginCreatorV3One*>(creators[i]);
      if (!is_taken(creator->getPluginName())) free_names.push_back(creators[i]);
    }
    count = static_cast<std::int32_t>(free_names.size());
    return free_names.data();
  } catch (...) {  // Only bad_alloc is possible. TensorRT treats an empty list as a failure to load the library.
    return nullptr;
  }
}

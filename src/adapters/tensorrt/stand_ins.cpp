// A library of other names: creators under those of other libraries' plugins (libgraft_stand_ins.so) or of standard
// ONNX operators (libgraft_onnx.so), as GRAFT_CREATORS says, made by the plugin library beside it.
//
// TensorRT refuses a whole library if one of its names is registered already, so these are not in the plugin library
// itself, and names that are taken are left out:
//   - those in the environment variable GRAFT_LEAVE_OUT, separated by commas, if it is set;
//   - otherwise those of NVIDIA's standard plugins, if their library is in this process.
// TensorRT's registry is not asked: its binary interface differs between versions.
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

/// Read in NVIDIA's sources of releases 10.0 to 11.1; each holds the versions of a name that Graft stands in for. Of
/// the two of deformable operators 11.x was not read: a name that is left out though it is free costs a message, the
/// other way round the whole library.
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

/// Asked anew at each load, as what is taken may have changed. Each answer stays: another thread may still walk it.
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
  } catch (...) {  // only memory can run out here; TensorRT takes an empty list as a failure to load
    return nullptr;
  }
}

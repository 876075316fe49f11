// The two functions that TensorRT looks for when it loads a plugin library. Compiled into each such library.
#include "adapters/tensorrt/creator.hpp"
#include "adapters/tensorrt/logger.hpp"

#define GRAFT_EXPORT extern "C" __attribute__((visibility("default")))

GRAFT_EXPORT void setLoggerFinder(nvinfer1::ILoggerFinder* finder) { graft::tensorrt::set_logger_finder(finder); }

GRAFT_EXPORT nvinfer1::IPluginCreatorInterface* const* getCreators(std::int32_t& count) {
  try {
    const auto& creators = graft::tensorrt::creators();
    count = static_cast<std::int32_t>(creators.size());
    return creators.data();
  } catch (...) {  // only memory can run out here; TensorRT takes an empty list as a failure to load
    count = 0;
    return nullptr;
  }
}

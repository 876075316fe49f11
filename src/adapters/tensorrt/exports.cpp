// The functions that a plugin library exports: the two that TensorRT looks up when it loads the library, and those from
// which a library of alternative names gets its creators. Compiled into each plugin library, with the namespace of its
// plugins.
#include "adapters/tensorrt/exports.hpp"

#include "adapters/tensorrt/creator.hpp"
#include "adapters/tensorrt/logger.hpp"
#include "graft/operator/registry.hpp"

namespace {

nvinfer1::IPluginCreatorInterface* const* list_of(
    const std::vector<nvinfer1::IPluginCreatorInterface*>& (*creators)(std::string_view),
    std::int32_t& count) noexcept {
  try {
    // Checked at each load, because a plugin with a wrong definition could compute wrong results.
    static const graft::Status checked = graft::check_operators(graft::linked_operators());
    if (!checked.ok()) {
      graft::tensorrt::log_error(("graft plugins: " + checked.message() + "; no plugin is registered").c_str());
      count = 0;
      return nullptr;
    }
    graft::register_cuda_kernels();  // In a plugin library only creators create operators.
    const auto& list = creators(GRAFT_PLUGIN_NAMESPACE);
    count = static_cast<std::int32_t>(list.size());
    return list.data();
  } catch (...) {  // Only bad_alloc is possible. TensorRT treats an empty list as a failure to load the library.
    count = 0;
    return nullptr;
  }
}

}  // namespace

GRAFT_EXPORT void setLoggerFinder(nvinfer1::ILoggerFinder* finder) { graft::tensorrt::set_logger_finder(finder); }

GRAFT_EXPORT nvinfer1::IPluginCreatorInterface* const* getCreators(std::int32_t& count) {
  return list_of(graft::tensorrt::creators, count);
}

GRAFT_EXPORT nvinfer1::IPluginCreatorInterface* const* graft_stand_ins(nvinfer1::ILoggerFinder* finder,
                                                                       std::int32_t& count) {
  if (finder != nullptr) graft::tensorrt::set_logger_finder(finder);
  return list_of(graft::tensorrt::stand_in_creators, count);
}

GRAFT_EXPORT nvinfer1::IPluginCreatorInterface* const* graft_onnx_names(nvinfer1::ILoggerFinder* finder,
                                                                        std::int32_t& count) {
  if (finder != nullptr) graft::tensorrt::set_logger_finder(finder);
  return list_of(graft::tensorrt::onnx_creators, count);
}

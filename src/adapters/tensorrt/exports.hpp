// The functions that a plugin library exports.
#pragma once

#include <NvInferRuntime.h>

#include <cstdint>

#define GRAFT_EXPORT extern "C" __attribute__((visibility("default")))

/// Sets the logger finder through which the library finds TensorRT's logger. TensorRT calls this function before
/// getCreators.
GRAFT_EXPORT void setLoggerFinder(nvinfer1::ILoggerFinder* finder);
GRAFT_EXPORT nvinfer1::IPluginCreatorInterface* const* getCreators(std::int32_t& count);
/// Returns the creators under the names of other libraries' plugins. libgraft_stand_ins.so, which belongs to a plugin
/// library, calls this function and passes its own logger.
GRAFT_EXPORT nvinfer1::IPluginCreatorInterface* const* graft_stand_ins(nvinfer1::ILoggerFinder* finder,
                                                                       std::int32_t& count);
/// Returns the creators under the names of standard ONNX operators. libgraft_onnx.so calls this function.
GRAFT_EXPORT nvinfer1::IPluginCreatorInterface* const* graft_onnx_names(nvinfer1::ILoggerFinder* finder,
                                                                        std::int32_t& count);

// What a plugin library shows to the process that loads it.
#pragma once

#include <NvInferRuntime.h>

#include <cstdint>

#define GRAFT_EXPORT extern "C" __attribute__((visibility("default")))

/// TensorRT calls it before getCreators.
GRAFT_EXPORT void setLoggerFinder(nvinfer1::ILoggerFinder* finder);
GRAFT_EXPORT nvinfer1::IPluginCreatorInterface* const* getCreators(std::int32_t& count);
/// The creators under the names of other libraries' plugins, for the library of stand-ins beside a plugin library,
/// which hands over the logger that it was given.
GRAFT_EXPORT nvinfer1::IPluginCreatorInterface* const* graft_stand_ins(nvinfer1::ILoggerFinder* finder,
                                                                       std::int32_t& count);
/// The same for those under the names of standard ONNX operators.
GRAFT_EXPORT nvinfer1::IPluginCreatorInterface* const* graft_onnx_names(nvinfer1::ILoggerFinder* finder,
                                                                        std::int32_t& count);

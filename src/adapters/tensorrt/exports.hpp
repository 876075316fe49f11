// The functions that a plugin library exports.
#pragma once

#include <NvInferRuntime.h>

#include <cstdint>

#define GRAFT_EXPORT extern "C" __attribute__((visibility("default")))

/// Sets the logger finder through which the library finds TensorRT's logger. TensorRT calls this function before
/// getCreators.
GRAFT_EXPORT void setLoggerFinder(nvinfer1::ILoggerFinder* finder);
GRAFT_EXPORT nvinfer1::IPluginCreatorInterface* const* getCreators(std::int32_t& count);
/// Returns the creators under the names of other libraries' plugins and sets `count` to their number. Called by the
/// separate library that registers these names for this plugin library (libgraft_stand_ins.so for Graft's own);
/// `finder` is the logger finder that TensorRT passed to that library.
GRAFT_EXPORT nvinfer1::IPluginCreatorInterface* const* graft_stand_ins(nvinfer1::ILoggerFinder* finder,
                                                                       std::int32_t& count);
/// Returns the creators under the names of standard ONNX operators and sets `count` to their number. Called by the
/// separate library that registers these names for this plugin library (libgraft_onnx.so for Graft's own); `finder` is
/// the logger finder that TensorRT passed to that library.
GRAFT_EXPORT nvinfer1::IPluginCreatorInterface* const* graft_onnx_names(nvinfer1::ILoggerFinder* finder,
                                                                        std::int32_t& count);

// Messages to the logger of whoever calls the plugin.
#pragma once

#include <NvInferRuntime.h>

namespace graft::tensorrt {

/// What TensorRT passes to setLoggerFinder when it loads the library; may be null.
void set_logger_finder(nvinfer1::ILoggerFinder* finder) noexcept;

/// To TensorRT's logger, or to standard error where TensorRT gave none.
void log_error(const char* message) noexcept;
void log_warning(const char* message) noexcept;

}  // namespace graft::tensorrt

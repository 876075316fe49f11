// Writes messages to TensorRT's logger.
#pragma once

#include <NvInferRuntime.h>

namespace graft::tensorrt {

/// Sets the finder that TensorRT passes to setLoggerFinder when it loads the library; may be null.
void set_logger_finder(nvinfer1::ILoggerFinder* finder) noexcept;

/// Logs a message to TensorRT's logger, or to standard error if TensorRT provides none.
void log_error(const char* message) noexcept;
void log_warning(const char* message) noexcept;

}  // namespace graft::tensorrt

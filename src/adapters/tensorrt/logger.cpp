// Writes messages to TensorRT's logger.
#include "adapters/tensorrt/logger.hpp"

#include <atomic>
#include <cstdio>

namespace graft::tensorrt {
namespace {

std::atomic<nvinfer1::ILoggerFinder*> logger_finder{nullptr};

void log(nvinfer1::ILogger::Severity severity, const char* message) noexcept {
  nvinfer1::ILoggerFinder* finder = logger_finder;
  nvinfer1::ILogger* logger = nullptr;
  try {
    if (finder != nullptr) logger = finder->findLogger();
  } catch (...) {  // findLogger may throw, but the callers of this function are noexcept
    logger = nullptr;
  }
  if (logger != nullptr) {
    logger->log(severity, message);
  } else {
    std::fprintf(stderr, "%s\n", message);
  }
}

}  // namespace

void set_logger_finder(nvinfer1::ILoggerFinder* finder) noexcept { logger_finder = finder; }

void log_error(const char* message) noexcept { log(nvinfer1::ILogger::Severity::kERROR, message); }

void log_warning(const char* message) noexcept { log(nvinfer1::ILogger::Severity::kWARNING, message); }

}  // namespace graft::tensorrt

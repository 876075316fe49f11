// Installs the handler of protobuf's log. A process has a single handler for all threads.
#include "onnx/protobuf_log.hpp"

#include <google/protobuf/stubs/logging.h>

#include <mutex>

namespace graft::onnx {
namespace {

thread_local std::string* kept = nullptr;
google::protobuf::LogHandler* handler_before = nullptr;

void keep(google::protobuf::LogLevel level, const char* file, int line, const std::string& message) {
  if (kept == nullptr) {
    if (handler_before != nullptr) handler_before(level, file, line, message);
    return;
  }
  if (!kept->empty()) kept->append("; ");
  kept->append(message, 0, message.find_last_not_of(" \n") + 1);
}

}  // namespace

ProtobufLog::ProtobufLog() : before_(kept) {
  // The handler is installed once, because other threads may be logging and protobuf does not guard its handler.
  static std::once_flag installed;
  std::call_once(installed, [] { handler_before = google::protobuf::SetLogHandler(keep); });
  kept = &text_;
}

ProtobufLog::~ProtobufLog() { kept = before_; }

std::string ProtobufLog::reason() const { return text_.empty() ? "" : ": " + text_; }

}  // namespace graft::onnx

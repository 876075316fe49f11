// What protobuf says of a file that it cannot read, for messages: by itself it writes to standard error.
#pragma once

#include <string>

namespace graft::onnx {

/// While it lives, what protobuf logs in this thread is kept here.
class ProtobufLog {
 public:
  ProtobufLog();
  ~ProtobufLog();
  ProtobufLog(const ProtobufLog&) = delete;
  ProtobufLog& operator=(const ProtobufLog&) = delete;

  /// ": what it said", or nothing.
  [[nodiscard]] std::string reason() const;

 private:
  std::string text_;
  std::string* before_;  ///< Of the object around this one.
};

}  // namespace graft::onnx

// Captures protobuf's messages about a file that it cannot parse. By default protobuf prints them to standard error.
#pragma once

#include <string>

namespace graft::onnx {

/// The next step after an error about a file that protobuf cannot read.
inline constexpr auto fetch_again = "Fetch the file again, or export the model again";

/// Captures the messages that protobuf logs in this thread during the lifetime of the object.
class ProtobufLog {
 public:
  ProtobufLog();
  ~ProtobufLog();
  ProtobufLog(const ProtobufLog&) = delete;
  ProtobufLog& operator=(const ProtobufLog&) = delete;

  /// Returns ": " and the captured messages, or an empty string if there are no messages.
  [[nodiscard]] std::string reason() const;

 private:
  std::string text_;
  std::string* before_;  ///< The text of the enclosing ProtobufLog object, or null.
};

}  // namespace graft::onnx

// Shortens OpenVINO's error messages.
#pragma once

#include <string>
#include <string_view>

namespace graft::runtime {

/// Returns an exception's text on one line, without positions in OpenVINO's sources and stack frames.
[[nodiscard]] std::string shorten_openvino_message(std::string_view text);

}  // namespace graft::runtime

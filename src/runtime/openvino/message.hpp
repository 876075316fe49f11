// OpenVINO's messages, made readable.
#pragma once

#include <string>
#include <string_view>

namespace graft::runtime {

/// What an exception's text says, without the places in OpenVINO's sources and the frames it went through; one line.
[[nodiscard]] std::string shorten_openvino_message(std::string_view text);

}  // namespace graft::runtime

// What TensorRT does with standard ONNX operators, by rule.
#pragma once

#include <optional>
#include <string>

#include "onnx/model.hpp"

namespace graft::inspect {

/// Why TensorRT cannot run a node of the standard domain; nothing where it can, and where that is unknown. Measured,
/// and the reason says where: operators that its parser refuses, and forms that its parser or builder refuses of
/// operators that it has otherwise.
[[nodiscard]] std::optional<std::string> refusal_of_tensorrt(const onnx::Node& node);

/// Whether a node does not run whatever it is fed with: that, or there is something wrong in it.
[[nodiscard]] bool fails_by_rule(const onnx::Node& node);

/// Whether a node that has no fault is known to fail.
[[nodiscard]] bool is_known_to_fail(const onnx::Node& node);

/// The rule by which a node that has no fault is known to fail; nothing where none is.
[[nodiscard]] std::optional<std::string> rule_against(const onnx::Node& node);

/// Why the rules do not know whether TensorRT runs a node of the standard domain, which only TensorRT itself can tell;
/// nothing where they do.
[[nodiscard]] std::optional<std::string> doubt_about(const onnx::Node& node);

/// What to do about a node of the standard domain that TensorRT does not run.
[[nodiscard]] std::string advice_on_refusal(const onnx::Node& node);

struct RefusalHint {
  std::string reason;
  std::string advice;
};

/// What TensorRT's words do not say of a node that it refused or failed on; nothing for most.
[[nodiscard]] std::optional<RefusalHint> hint_on_refusal(const onnx::Node& node);

}  // namespace graft::inspect

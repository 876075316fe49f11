// What the releases of TensorRT do with standard ONNX operators, by rule.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "inspect/tensorrt_release.hpp"
#include "onnx/model.hpp"

namespace graft::inspect {

/// Why a release of TensorRT cannot run a node of the standard domain; nothing where it can, and where that is unknown.
/// The reason has the source: operators that its parser refuses, and forms and types that its parser or builder refuses
/// of operators that it has otherwise.
[[nodiscard]] std::optional<std::string> refusal_of_tensorrt(const onnx::Node& node, const Release& release);

/// What a release computes wrongly without a word.
struct Danger {
  std::string reason;  ///< With the source.
  std::string advice;
};

/// What a release is reported, or was seen, to compute wrongly of a node that it takes; nothing for most.
[[nodiscard]] std::optional<Danger> danger_of(const onnx::Node& node, const Release& release);

/// Whether a release builds a plugin in the body of an If, Loop or Scan.
[[nodiscard]] Answer builds_plugins_in_bodies(const Release& release);

/// Why a plugin cannot be relied on in the body of an If, Loop or Scan: the release does not build it there, or it is
/// not known whether it does. Nothing where it builds.
[[nodiscard]] std::optional<std::string> refusal_of_plugins_in_bodies(const Release& release);

/// The guards of the conversion against what a release computes wrongly.
[[nodiscard]] std::vector<std::string> guards_for(const Release& release);

/// Whether a node does not run, whatever it is fed with, in the newest release that was measured: so by rule, or there
/// is something wrong in it. So are those below.
[[nodiscard]] bool fails_by_rule(const onnx::Node& node);

/// Whether a node that has no fault is known to fail.
[[nodiscard]] bool is_known_to_fail(const onnx::Node& node);

/// The rule by which a node that has no fault is known to fail; nothing where none is.
[[nodiscard]] std::optional<std::string> rule_against(const onnx::Node& node);

/// Why a release does not take a node as its operator set has it, of the standard domain; nothing where it does. A
/// newer operator set, which the conversion writes, is all it needs.
[[nodiscard]] std::optional<std::string> refusal_of_opset(const onnx::Node& node, const Release& release);

/// Why the rules do not know whether a release runs a node of the standard domain that it is not known to refuse;
/// nothing where they do.
[[nodiscard]] std::optional<std::string> doubt_about(const onnx::Node& node, const Release& release);

/// What to do about a node of the standard domain that TensorRT does not run.
[[nodiscard]] std::string advice_on_refusal(const onnx::Node& node);

struct RefusalHint {
  std::string reason;
  std::string advice;
};

/// What TensorRT's words do not say of a node that it refused or failed on; nothing for most.
[[nodiscard]] std::optional<RefusalHint> hint_on_refusal(const onnx::Node& node);

}  // namespace graft::inspect

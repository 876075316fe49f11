// Rules on standard ONNX operators: which of them the releases of TensorRT refuse or compute wrongly.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "inspect/tensorrt_release.hpp"
#include "onnx/model.hpp"

namespace graft::inspect {

/// Returns why a release of TensorRT cannot run a node of the default ONNX domain, and the source of this information.
/// Returns nothing if the release can run it or if that is unknown. The reason may be the operator, a type, or a
/// special form (attributes, types or shapes, see forms_of()) that the parser or the builder refuses.
[[nodiscard]] std::optional<std::string> refusal_of_tensorrt(const onnx::Node& node, const Release& release);

/// Returns whether refusal_of_tensorrt() refuses the node because of a special form (see forms_of()) that the release
/// builds without an error message but computes wrongly.
[[nodiscard]] bool has_wrong_form(const onnx::Node& node, const Release& release);

/// Returns whether the parser of a release supports an operator of this name that ONNX does not define, such as
/// MultiHeadAttention of com.microsoft. The parser ignores the domain.
[[nodiscard]] bool parses_beyond_onnx(const onnx::Node& node, const Release& release);

/// The reason why a release computes a node wrongly, although it accepts the node without an error message, and the
/// advice to the user.
struct Danger {
  std::string reason;  ///< Includes the source of the fact.
  std::string advice;
};

/// Returns why a release computes a node wrongly although it accepts the node, as reports or measurements show. Returns
/// nothing if no such error is known.
[[nodiscard]] std::optional<Danger> danger_of(const onnx::Node& node, const Release& release);

/// Returns whether a node is invalid, or rules say that the release of newest_measured_release() cannot run it,
/// whatever its input values are.
[[nodiscard]] bool fails_by_rule(const onnx::Node& node);

/// Returns whether a node is valid, and rules say that the release of newest_measured_release() cannot run it.
[[nodiscard]] bool is_known_to_fail(const onnx::Node& node);

/// Returns the reason why rules say that the release of newest_measured_release() cannot run a valid node, or nothing.
[[nodiscard]] std::optional<std::string> rule_against(const onnx::Node& node);

/// Returns why a release does not accept a node of the default ONNX domain in the opset of its graph, although it
/// accepts it in the newer opset that `graft convert` writes. Returns nothing if it accepts the node.
[[nodiscard]] std::optional<std::string> refusal_of_opset(const onnx::Node& node, const Release& release);

/// Returns why the rules do not know whether a release runs a node of the default ONNX domain, or nothing if they know.
/// Call it for nodes for which refusal_of_tensorrt() returns nothing.
[[nodiscard]] std::optional<std::string> doubt_about(const onnx::Node& node, const Release& release);

/// Returns the advice on a node of the default ONNX domain that TensorRT does not run.
[[nodiscard]] std::string advice_on_refusal(const onnx::Node& node);

/// Returns the general advice to run `graft convert`, for a node that it rewrites only under conditions.
[[nodiscard]] std::string advice_to_convert();
/// Returns the advice on a node for which TensorRT, `graft convert` and Graft's operators offer no solution: to write
/// an operator.
[[nodiscard]] std::string advice_to_write_one();
/// Returns the advice on an operator of ONNX Runtime (domain com.microsoft) that TensorRT does not support.
[[nodiscard]] std::string advice_on_onnxruntime(const onnx::Node& node);

/// Returns the advice for a node that would be a plugin in the body of an If, Loop or Scan.
[[nodiscard]] std::string advice_on_plugin_in_body();

struct RefusalHint {
  std::string reason;
  std::string advice;
};

/// Returns a reason and an advice that TensorRT's messages do not contain, for a node that TensorRT refused or failed
/// to build, or nothing if no better explanation is known.
[[nodiscard]] std::optional<RefusalHint> hint_on_refusal(const onnx::Node& node);

}  // namespace graft::inspect

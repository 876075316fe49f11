// Rules on standard ONNX operators: which of them the releases of TensorRT refuse or compute wrongly.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "inspect/tensorrt_release.hpp"
#include "onnx/model.hpp"

namespace graft::inspect {

/// Returns why a release of TensorRT cannot run a node of the standard domain, with the source of the fact, or nothing
/// if it can or if that is unknown. The rules cover operators that the parser refuses, and forms and types of other
/// operators that the parser or the builder refuses.
[[nodiscard]] std::optional<std::string> refusal_of_tensorrt(const onnx::Node& node, const Release& release);

/// Returns whether a node that refusal_of_tensorrt() refuses is built by the release, which computes it wrongly without
/// a message.
[[nodiscard]] bool has_wrong_form(const onnx::Node& node, const Release& release);

/// Returns whether the parser of a release has an operator of this name itself, although ONNX has none, as
/// MultiHeadAttention of com.microsoft. The parser does not look at the domain.
[[nodiscard]] bool parses_beyond_onnx(const onnx::Node& node, const Release& release);

/// A computation that a release accepts and does wrongly without a message.
struct Danger {
  std::string reason;  ///< Includes the source of the fact.
  std::string advice;
};

/// Returns what a release was reported, or measured, to compute wrongly in a node that it accepts; nothing for most
/// nodes.
[[nodiscard]] std::optional<Danger> danger_of(const onnx::Node& node, const Release& release);

/// Returns whether a node has a fault, or fails by rule in the newest measured release, whatever its input.
[[nodiscard]] bool fails_by_rule(const onnx::Node& node);

/// Returns whether a node without a fault fails by rule in the newest measured release.
[[nodiscard]] bool is_known_to_fail(const onnx::Node& node);

/// Returns the rule by which a node without a fault fails in the newest measured release, or nothing.
[[nodiscard]] std::optional<std::string> rule_against(const onnx::Node& node);

/// Returns why a release does not accept a node of the standard domain in the opset of its graph, or nothing if it
/// does. The newer opset that the conversion writes is sufficient to fix it.
[[nodiscard]] std::optional<std::string> refusal_of_opset(const onnx::Node& node, const Release& release);

/// Returns why the rules cannot tell whether a release runs a node of the standard domain that it is not known to
/// refuse, or nothing if they can tell.
[[nodiscard]] std::optional<std::string> doubt_about(const onnx::Node& node, const Release& release);

/// Returns advice on a node of the standard domain that TensorRT does not run.
[[nodiscard]] std::string advice_on_refusal(const onnx::Node& node);

/// Returns the advice on a node that `graft convert` rewrites only under conditions.
[[nodiscard]] std::string advice_to_convert();
/// Returns the advice on a node that TensorRT does not run, `graft convert` does not rewrite, and no operator of Graft
/// computes.
[[nodiscard]] std::string advice_to_write_one();
/// Returns the advice on an operator of ONNX Runtime that TensorRT does not have.
[[nodiscard]] std::string advice_on_onnxruntime(const onnx::Node& node);

/// Returns the advice on a plugin in the body of an If, Loop or Scan.
[[nodiscard]] std::string advice_on_plugin_in_body();

struct RefusalHint {
  std::string reason;
  std::string advice;
};

/// Returns an explanation that TensorRT's messages lack, for a node that TensorRT refused or failed on; nothing for
/// most nodes.
[[nodiscard]] std::optional<RefusalHint> hint_on_refusal(const onnx::Node& node);

}  // namespace graft::inspect

// Judges by rule how each node of a model runs in TensorRT.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "graft/node_ref.hpp"
#include "inspect/tensorrt_release.hpp"
#include "onnx/model.hpp"
#include "onnx/node_ref.hpp"

namespace graft::inspect {

/// The verdicts on a node, from best to worst.
enum class Verdict : std::uint8_t {
  native,
  lowered,
  plugin,
  unknown,      ///< The rules give no answer, and TensorRT was not probed.
  not_asked,    ///< TensorRT was probed with other nodes, and could not be with this one.
  unsupported,  ///< A rule says so. The verdicts after this one come from TensorRT itself.
  refused,
  fails,
  hangs,
  crashes,
};
inline constexpr std::array all_verdicts{Verdict::native,    Verdict::lowered,     Verdict::plugin,  Verdict::unknown,
                                         Verdict::not_asked, Verdict::unsupported, Verdict::refused, Verdict::fails,
                                         Verdict::hangs,     Verdict::crashes};

/// Whether a node with that verdict keeps the network from running.
[[nodiscard]] constexpr bool is_bad(Verdict verdict) { return verdict >= Verdict::unsupported; }
/// Whether it is unknown if a node with that verdict runs.
[[nodiscard]] constexpr bool is_open(Verdict verdict) {
  return verdict == Verdict::unknown || verdict == Verdict::not_asked;
}
/// Whether only TensorRT itself, with --probe, leads to that verdict.
[[nodiscard]] constexpr bool is_by_tensorrt(Verdict verdict) {
  return verdict == Verdict::not_asked || verdict > Verdict::unsupported;
}

[[nodiscard]] std::string_view name_of(Verdict verdict);
/// Returns "TensorRT runs it as it is". `by_rules`: TensorRT was not asked about the model, so nothing is promised.
[[nodiscard]] std::string meaning_of(Verdict verdict, bool by_rules = false);

inline constexpr auto advice_on_fault = "correct the node in the program that wrote the model";

/// The NodeVerdict::cause of a node that the release accepts and computes wrongly.
inline constexpr auto computed_wrongly = "computed wrongly";

struct NodeVerdict {
  NodeRef node;
  /// The operator, such as "Conv" or "graft::L2Normalize". A call of an operator's function has the operator's own
  /// name.
  std::string op;
  Verdict verdict = Verdict::native;
  std::string reason;              ///< Empty if there is nothing to report.
  std::string advice;              ///< How to fix the node; empty if there is nothing to fix.
  std::string truth = "rule";      ///< The source of the verdict: rule, parser or builder.
  std::string tensorrt = {};       ///< TensorRT's messages.
  std::string plugin = {};         ///< The plugin that runs the node, and the library that it comes from.
  std::string cause = {};          ///< A word for what is wrong with a plugin node, or computed_wrongly.
  std::optional<NodeRef> as = {};  ///< The alike node with which TensorRT was probed instead.
};

/// Returns whether all verdicts are those of rules.
[[nodiscard]] bool are_by_rules(const std::vector<NodeVerdict>& nodes);

/// The changes that `graft convert` will make.
struct Forecast {
  /// Describes, for each node that is rewritten, the replacement.
  std::map<NodeRef, std::string, onnx::ByName> becomes;
  std::set<NodeRef, onnx::ByName> stays;  ///< Operators whose native form was tried and rejected.
};

/// Returns whether a network with these nodes runs, or nothing if that is unknown.
[[nodiscard]] std::optional<bool> runs(const std::vector<NodeVerdict>& nodes);

/// Returns the operator, or the plugin that an operator stands in for, whose name equals `op_type` or differs by a
/// slip.
[[nodiscard]] std::optional<std::string> nearest_own_operator(const std::string& op_type);

/// Returns the verdict on every node, also in sub-graphs, for a release of TensorRT. Without a forecast, the model is
/// taken to be converted already.
[[nodiscard]] std::vector<NodeVerdict> judge_nodes(const onnx::Model& model, const Forecast& forecast = {},
                                                   const Release& release = newest_measured_release());

}  // namespace graft::inspect

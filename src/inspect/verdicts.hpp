// How each node of a model will run in TensorRT, by rule.
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

/// From best to worst.
enum class Verdict : std::uint8_t {
  native,
  lowered,
  plugin,
  unknown,      ///< The rules do not know, and TensorRT was not asked.
  not_asked,    ///< TensorRT was asked about others, and could not be about this one.
  unsupported,  ///< By rule; the rest by TensorRT itself.
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
/// Whether a node has that verdict only where TensorRT itself is asked, with --probe.
[[nodiscard]] constexpr bool is_by_tensorrt(Verdict verdict) {
  return verdict == Verdict::not_asked || verdict > Verdict::unsupported;
}

[[nodiscard]] std::string_view name_of(Verdict verdict);
/// "TensorRT runs it as it is".
[[nodiscard]] std::string meaning_of(Verdict verdict);

inline constexpr auto advice_on_fault = "correct the node in the program that wrote the model";

/// NodeVerdict::cause of a node that the release takes, and computes wrongly.
inline constexpr auto computed_wrongly = "computed wrongly";

struct NodeVerdict {
  NodeRef node;
  std::string op;  ///< "Conv", "graft::L2Normalize": a call of an operator's function goes by the operator's own name.
  Verdict verdict = Verdict::native;
  std::string reason;              ///< Empty where there is nothing to say.
  std::string advice;              ///< What to do about a node that is not native.
  std::string truth = "rule";      ///< Who said so: rule, parser, builder.
  std::string tensorrt = {};       ///< TensorRT's own words.
  std::string plugin = {};         ///< Whose plugin TensorRT makes of it.
  std::string cause = {};          ///< A word for what is wrong with a plugin node; computed_wrongly.
  std::optional<NodeRef> as = {};  ///< The node that TensorRT was asked about in its place, which is the same.
};

/// What `graft convert` will do.
struct Forecast {
  std::map<NodeRef, std::string, onnx::ByName> becomes;  ///< Of nodes that go: what comes.
  std::set<NodeRef, onnx::ByName> stays;                 ///< Operators whose native form was tried and is not the same.
};

/// Whether a network with these nodes runs; nothing where that is unknown.
[[nodiscard]] std::optional<bool> runs(const std::vector<NodeVerdict>& nodes);

/// The operator of Graft, or the plugin it stands in for, that has this name or one that differs by a slip.
[[nodiscard]] std::optional<std::string> nearest_own_operator(const std::string& op_type);

/// Every node, those of sub-graphs too, as a release of TensorRT runs it. Without a forecast: of a model that is
/// converted already.
[[nodiscard]] std::vector<NodeVerdict> judge_nodes(const onnx::Model& model, const Forecast& forecast = {},
                                                   const Release& release = newest_measured_release());

}  // namespace graft::inspect

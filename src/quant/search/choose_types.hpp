// Decides, from the values of tensors, which nodes are kept in f32 when a network is converted to f16 or bf16.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "graft/report/quantize.hpp"
#include "quant/plan/typed.hpp"
#include "runtime/engine.hpp"
#include "verify/compare/figures.hpp"
#include "verify/compare/output_figures.hpp"
#include "verify/localize/emulate.hpp"

namespace graft::quant {

using report::WhyKept;

struct ChooseOptions {
  report::Precision precision = report::Precision::f16;
  bool typed_io = false;          ///< Whether inputs and outputs are converted as well. See TypedOptions::typed_io.
  std::vector<std::string> keep;  ///< Patterns, with * and ?, of the nodes, tensors or operators to keep in f32.
  std::vector<std::string> only;  ///< Patterns of all nodes that may leave f32; if empty, all may.
  /// Whether nodes whose results a QuantizeLinear reads may be converted, see TypedOptions::narrow_before_int8.
  bool narrow_before_int8 = false;
  /// Further nodes to keep in f32, as a map from their key_of() to the reason.
  std::map<std::string, std::string, std::less<>> kept = {};
  std::vector<runtime::TensorMap> data;  ///< The inputs of each run; if empty, synthetic inputs are used.
  std::map<std::string, std::vector<std::int64_t>, std::less<>> shapes;  ///< The shapes of synthetic inputs.
  /// The signal-to-noise ratio, in dB, that each output must reach; if not set, limit_of(precision).
  std::optional<double> limit_db;
  /// A safety margin in dB: the search tries to exceed the limit by it, because other inputs may have larger errors.
  double margin_db = 0;
  int threads = 0;
  std::int64_t memory = std::int64_t{1} << 30;  ///< The memory in bytes for stored tensors. See VerifyOptions::memory.
  NodeRefusal refusal = {};                     ///< Refuses nodes in the narrow type. See TypedOptions::refusal.
  std::function<void(const std::string& what, std::size_t done, std::size_t total)> progress = {};
};

/// Returns the default limit, in dB, for outputs in this type: verify::narrow_limit_db, so that `verify` accepts a
/// model that meets it.
[[nodiscard]] double limit_of(report::Precision precision);

/// A node, the type that was chosen for it, and the reason.
struct ChosenNode {
  TypedNode node;
  std::optional<WhyKept> why;       ///< The kind of reason for keeping the node in f32; empty for other nodes.
  verify::TensorRange range;        ///< The range of the node's first output in the f32 network.
  verify::RoundingEffect rounding;  ///< The effect of rounding that output to the type.
  /// Whether `range` and `rounding` are set. They are if the first output is an f32 tensor that was measured.
  bool has_figures = false;
};

struct ChosenTypes {
  TypedModel typed;
  std::vector<ChosenNode> nodes;
  std::size_t runs = 0;                        ///< The number of runs on which the decisions are based.
  std::vector<verify::OutputFigures> outputs;  ///< The error figures of the resulting model, in the worst run.
  /// The errors of the outputs at the start of the search, when only two kinds of nodes are in f32: nodes that
  /// do not support the narrow type, and nodes that the options keep in f32.
  std::vector<verify::OutputFigures> plain;
  std::vector<std::string> notes;
  std::vector<std::string> inputs;  ///< The inputs of the first run, for example "image: f32[2, 1, 8, 8]".
  double limit_db = 0;
  bool met = false;
  std::size_t trials = 0;  ///< The number of typed models that were run.

  /// Returns the nodes that are kept in f32 although they support the narrow type (f16 or bf16).
  [[nodiscard]] std::vector<const ChosenNode*> kept() const;
  /// Returns, for the report, the type of each node and the reason for it. `precision` is the type for which the nodes
  /// were chosen.
  [[nodiscard]] std::vector<report::QuantizedNode> reported_nodes(report::Precision precision) const;
};

/// Chooses for each node f32 or the narrow type (f16 or bf16), and returns the typed model with the reasons. Runs the
/// f32 network and measures every tensor. Keeps in f32 the nodes that would overflow, whose integers would be rounded,
/// or whose internal sums exceed the range. If the outputs then miss the limit, also keeps the nodes that lose most
/// accuracy, until the outputs meet the limit or keeping more nodes does not help; finally changes those of them back
/// that need not be in f32. Each decision is judged by running the typed model on all data, with its tensors rounded
/// where they are computed; the worst run decides. Throws Error for a pattern that matches nothing, and if the model
/// does not run.
[[nodiscard]] ChosenTypes choose_types(const runtime::Engine& engine, const onnx::Model& model,
                                       const ChooseOptions& options);

}  // namespace graft::quant

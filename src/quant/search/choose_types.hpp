// Decides which nodes stay in f32 when a network becomes f16 or bf16, from the numbers in its tensors.
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
  verify::Precision precision = verify::Precision::f16;
  bool typed_io = false;            ///< See TypedOptions.
  std::vector<std::string> keep;    ///< Names of nodes, tensors or operators, with * and ?, that stay in f32.
  std::vector<std::string> only;    ///< Names of all that may leave f32. Empty: everything may.
  bool narrow_before_int8 = false;  ///< See TypedOptions.
  std::map<std::string, std::string, std::less<>> kept = {};  ///< Further nodes that stay in f32, by key_of, and why.
  std::vector<runtime::TensorMap> data;  ///< Inputs of each run; if empty, synthetic inputs are used.
  std::map<std::string, std::vector<std::int64_t>, std::less<>> shapes;  ///< Shapes of synthetic inputs.
  std::optional<double> limit_db;  ///< The signal-to-noise ratio that each output must have; limit_of if not set.
  double margin_db = 0;  ///< Decibels above the limit that the search aims at, since other inputs may do worse.
  int threads = 0;
  std::int64_t memory = std::int64_t{1} << 30;  ///< See LayerOptions.
  NodeRefusal refusal = {};                     ///< See TypedOptions::refusal.
  std::function<void(const std::string& what, std::size_t done, std::size_t total)> progress = {};
};

/// Returns verify::narrow_limit_db, so that verify accepts a model that meets the limit.
[[nodiscard]] double limit_of(verify::Precision precision);

/// A node and why it has its type.
struct ChosenNode {
  TypedNode node;
  std::optional<WhyKept> why;       ///< The reason, for a kept node.
  verify::TensorRange range;        ///< The range of the first output in the f32 network.
  verify::RoundingEffect rounding;  ///< The effect of the type on that output.
  bool has_figures = false;         ///< Whether both are known: the output is a tensor of f32.
};

struct ChosenTypes {
  TypedModel typed;
  std::vector<ChosenNode> nodes;
  std::size_t runs = 0;                        ///< The number of runs that decided.
  std::vector<verify::OutputFigures> outputs;  ///< Figures of the model that was written, in the worst run.
  /// Figures of the model in which only nodes are kept that have no such form or were requested.
  std::vector<verify::OutputFigures> plain;
  std::vector<std::string> notes;
  std::vector<std::string> inputs;  ///< The inputs of the first run: "image: f32[2, 1, 8, 8]".
  double limit_db = 0;
  bool met = false;
  std::size_t trials = 0;  ///< The number of models that were run.

  /// Returns the kept nodes, without those that have no such form.
  [[nodiscard]] std::vector<const ChosenNode*> kept() const;
};

/// Runs the f32 network and measures every tensor. Keeps in f32 nodes that would overflow, count wrongly or sum too
/// far, and, if the outputs then still miss the limit, the nodes that lose most, until the outputs meet it or nothing
/// helps. Nodes that were kept for the last reason and are not needed in f32 in the end return to the type. Everything
/// is judged by running the typed model with its tensors rounded where they are computed, for all data: a node that
/// breaks a single run is kept. Throws Error for a pattern that matches nothing, and if the model does not run.
[[nodiscard]] ChosenTypes choose_types(const runtime::Engine& engine, const onnx::Model& model,
                                       const ChooseOptions& options);

}  // namespace graft::quant

// Converts a model with the ordered pipeline of passes, each of which proves its changes.
#pragma once

#include <functional>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "graft/operator/shape.hpp"
#include "onnx/model.hpp"
#include "passes/passes.hpp"
#include "passes/report.hpp"
#include "runtime/engine.hpp"
#include "verify/prove/prove.hpp"

namespace graft::passes {

struct ConvertOptions {
  Plugins plugins = Plugins::automatic;
  std::vector<std::string> only;     ///< Passes to run; if empty, all passes run.
  std::vector<std::string> without;  ///< Passes to leave out.
  std::vector<std::string> guards;   ///< Guards to run in addition to the passes that always run.
  /// Why TensorRT cannot build a plugin in the body of an If, Loop or Scan, as a clause for reports; empty if it can.
  /// The default applies to every release of TensorRT that was tested.
  std::string refusal_of_plugins_in_bodies = "TensorRT builds no plugin in the body of an If, Loop or Scan";
  /// Whether TensorRT builds com.microsoft.MultiHeadAttention without masks and caches itself, so that such a node is
  /// kept. The default is true for TensorRT-RTX from 1.6 on.
  bool has_multi_head_attention = true;
  /// The maximum number of nodes that may replace one Loop or Scan with a known number of iterations. 0 disables
  /// unrolling.
  std::int64_t unroll = report::default_unroll;
  Quantized quantized = Quantized::exact;
  bool prove = true;        ///< Whether rewrites are proven. Without proof every rewrite is accepted.
  bool prove_each = false;  ///< Whether each rewrite is proven, even if a similar one was proven before.
  verify::ProofOptions proof;
  /// The maximum number of rewrites that are proven by running the whole model. This is necessary if the replaced nodes
  /// cannot run by themselves because shapes are unknown, and may take long.
  std::size_t whole_model_proofs = 8;
  std::map<std::string, Shape, std::less<>> input_shapes;  ///< Shapes that replace those in the file.
  /// Further passes of the caller. Pass::after names the pass after which each of them runs; passes with the same
  /// `after` run in the order of this list.
  std::vector<Pass> extra_passes;
  /// Called before each pass with its name, the number of passes already run and the total number. Not called if empty,
  /// which is the default.
  std::function<void(std::string_view pass, std::size_t done, std::size_t total)> progress;
};

/// Returns the built-in passes in the order in which they run.
[[nodiscard]] std::span<const Pass> pipeline();

/// Rewrites the model in place by running the passes until none rewrites anything, and returns a report of the
/// rewrites. Afterwards every Graft node carries its ONNX function, if it has one, so that the model runs in any ONNX
/// runtime. Converting the result again changes nothing. Throws Error for an unknown pass name, for an inconsistent
/// model, and if rewrites must be proven and the engine cannot run.
RewriteReport convert(const runtime::Engine& engine, onnx::Model& model, const ConvertOptions& options = {});

}  // namespace graft::passes

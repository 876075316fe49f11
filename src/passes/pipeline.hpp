// Converts a model: the ordered pipeline of passes, each of which proves what it changes.
#pragma once

#include <functional>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "graft/shape.hpp"
#include "onnx/model.hpp"
#include "passes/passes.hpp"
#include "passes/report.hpp"
#include "passes/rule_file.hpp"
#include "runtime/engine.hpp"
#include "verify/prove.hpp"

namespace graft::passes {

enum class PluginMode : std::uint8_t {
  automatic,  ///< A plugin where there is no native layer that is exact and as fast.
  always,     ///< A plugin wherever an operator of Graft can stand.
  never,      ///< Standard operators only, where they can express it.
};

struct ConvertOptions {
  PluginMode plugins = PluginMode::automatic;
  std::vector<std::string> only;     ///< Passes to run; empty: all.
  std::vector<std::string> without;  ///< Passes to leave out.
  std::vector<std::string> guards;   ///< Guards to run beside the passes that run without being asked for.
  /// Why no plugin may stand in the body of an If, Loop or Scan, which reports quote; empty where TensorRT builds one
  /// there. The default is what every release that was measured does.
  std::string refusal_of_plugins_in_bodies = "TensorRT builds no plugin in the body of an If, Loop or Scan";
  bool prove = true;        ///< Without proof every rewrite is made as it is.
  bool prove_each = false;  ///< Also those that differ from a proven one in the values of weights alone.
  verify::ProofOptions proof;
  /// Rewrites whose region cannot be run by itself (shapes unknown there) are proven by running the whole model, at
  /// most this number of times, since that may take long.
  std::size_t whole_model_proofs = 8;
  std::map<std::string, Shape, std::less<>> input_shapes;  ///< In place of the shapes in the file.
  /// Of the user, see read_rules; a pass cannot be chosen to run without them. Not done: ConvertReport::rules says why.
  std::vector<Rule> rules;
  std::vector<Pass> extra_passes;  ///< Run once, after the fusions, before plugins are chosen.
  /// Called before each pass.
  std::function<void(std::string_view pass, std::size_t done, std::size_t total)> progress;
};

/// The passes in the order in which they run.
[[nodiscard]] std::span<const Pass> pipeline();

/// Rewrites the model in place, running the passes until none finds anything more, and says what was done. Afterwards
/// every node of Graft carries its ONNX function where it has one, so that the model runs anywhere. Converting a
/// converted model changes nothing. Throws Error for an unknown pass name and for a model that contradicts itself.
ConvertReport convert(const runtime::Engine& engine, onnx::Model& model, const ConvertOptions& options = {});

}  // namespace graft::passes

// Forecasts what `graft convert` makes of a model by converting a copy in memory.
#pragma once

#include <cstddef>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "inspect/tensorrt_release.hpp"
#include "inspect/verdicts.hpp"
#include "onnx/count_nodes.hpp"
#include "onnx/model.hpp"
#include "passes/pipeline.hpp"
#include "runtime/engine.hpp"

namespace graft::inspect {

/// Infers types and shapes. The message of an error in a node becomes metadata of that node, so that the node is judged
/// like any other.
void infer_and_note_faults(onnx::Model& model, const std::map<std::string, Shape, std::less<>>& input_shapes);

/// Returns a copy of a model to which infer_and_note_faults() was applied, with the shapes of the file.
[[nodiscard]] onnx::Model inferred_copy(const onnx::Model& model);

/// Converts a model for a release. Rewrites are proven only if the model has operators of Graft, whose native form may
/// hold for some sizes only, and if `engine` can run: proving every fusion may take long.
report::RewriteReport convert_in_memory(const runtime::Engine& engine, onnx::Model& model, const Release& release);

struct Prospect {
  Forecast forecast;
  onnx::NodeCounts nodes;                             ///< The nodes of the converted model.
  std::shared_ptr<const onnx::Model> converted = {};  ///< The converted model; null if nothing was rewritten.
  std::vector<report::Fusion> fusions = {};           ///< The groups of nodes that `graft convert` replaces together.
  std::size_t fused = 0;  ///< The number of nodes that `graft convert` fuses to operators of Graft that run as plugins.
  std::vector<std::string> warnings;
  std::vector<report::NearMiss> near_misses = {};  ///< The near misses of the conversion.
};

/// Converts a copy of a model that infer_and_note_faults() has prepared, for a release, and returns what becomes of its
/// nodes. An error of the conversion becomes a warning.
[[nodiscard]] Prospect prospect_of(const runtime::Engine& engine, const onnx::Model& model, const Release& release);

}  // namespace graft::inspect

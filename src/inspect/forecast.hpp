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

/// Infers types and shapes. If a node is invalid, its error message is stored in its metadata (fault_note) and
/// inference continues, so that every node gets a verdict.
void infer_and_note_faults(onnx::Model& model, const std::map<std::string, Shape, std::less<>>& input_shapes);

/// Returns a copy of a model with types and shapes inferred by infer_and_note_faults(), from the input shapes in the
/// file.
[[nodiscard]] onnx::Model inferred_copy(const onnx::Model& model);

/// Converts `model` in place for a release, and returns the report of the conversion. Proving every rewrite may take
/// long. Rewrites are therefore proven only if `engine` can run and the model contains Graft operators, which a
/// conversion may replace with native layers that are equivalent for some sizes only.
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

/// Converts a copy of a model for a release, and returns the converted model with the nodes that are rewritten, fused
/// or kept. infer_and_note_faults() must have been called on the model. An error of the conversion is returned as a
/// warning.
[[nodiscard]] Prospect prospect_of(const runtime::Engine& engine, const onnx::Model& model, const Release& release);

}  // namespace graft::inspect

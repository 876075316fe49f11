// What `graft convert` would make of a model, found out in memory.
#pragma once

#include <cstddef>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "inspect/verdicts.hpp"
#include "onnx/model.hpp"
#include "passes/pipeline.hpp"
#include "runtime/engine.hpp"

namespace graft::inspect {

/// Infers types and shapes, and notes on a node what is wrong with it, so that it is judged like any other.
void infer_and_note_faults(onnx::Model& model, const std::map<std::string, Shape, std::less<>>& input_shapes);

/// Converts a model with no fusion proven, which may take long. The native form of an operator is tried, as it may hold
/// for some sizes alone.
passes::ConvertReport convert_in_memory(const runtime::Engine& engine, onnx::Model& model);

struct Prospect {
  Forecast forecast;
  std::size_t nodes = 0;                              ///< Of the converted model.
  bool is_another = false;                            ///< Whether the conversion rewrites anything.
  std::shared_ptr<const onnx::Model> converted = {};  ///< What it makes, where that is another model.
  std::vector<std::string> warnings;
};

/// Converts a copy of a model whose faults are noted, and returns what becomes of its nodes. What `graft convert`
/// refuses is a warning.
[[nodiscard]] Prospect prospect_of(const runtime::Engine& engine, const onnx::Model& model);

}  // namespace graft::inspect

// Folds nodes that depend only on constants, because the plugin would overwrite their results.
#pragma once

#include <functional>
#include <memory>
#include <openvino/core/model.hpp>
#include <openvino/runtime/compiled_model.hpp>

namespace graft::runtime {

/// Replaces each node that depends only on constants and fixed shapes, and that OpenVINO itself does not fold
/// (GatherND, GatherElements), by a constant. Inside the compiled model, OpenVINO's CPU plugin of 2026.4 computes such
/// a node only in the first run and then stores the sum or product with another tensor in the same memory: the second
/// run reads that sum. Random operators are not folded.
void hold_constants(ov::Model& model,
                    const std::function<ov::CompiledModel(const std::shared_ptr<ov::Model>& model)>& compile);

}  // namespace graft::runtime

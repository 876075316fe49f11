// Keeps what is computed of constants alone from being overwritten.
#pragma once

#include <functional>
#include <memory>
#include <openvino/core/model.hpp>
#include <openvino/runtime/compiled_model.hpp>

namespace graft::runtime {

/// What is computed of constants and fixed shapes alone, and that OpenVINO itself does not compute ahead (GatherND,
/// GatherElements), is computed once, by itself, and becomes a constant. Inside the compiled model the plugin of 2026.4
/// computes it in the first run, and then writes the sum or product with another tensor over it: in the second run it
/// is that sum. Random numbers stay as they are.
void hold_constants(ov::Model& model,
                    const std::function<ov::CompiledModel(const std::shared_ptr<ov::Model>& model)>& compile);

}  // namespace graft::runtime

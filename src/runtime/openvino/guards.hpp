// Protects results from known faults of OpenVINO's CPU plugin.
#pragma once

#include <openvino/core/model.hpp>
#include <string>
#include <string_view>

#include "onnx/model.hpp"

namespace graft::runtime {

/// A part of the message of a guard that found integers which OpenVINO's CPU plugin would round. A run that fails with
/// such a message throws EngineLimit.
inline constexpr std::string_view beyond_exact_integers =
    "the CPU engine computes these integers in f32, which rounds integers beyond 2^24";

/// Throws Error naming the first node that OpenVINO 2026.4 accepts but computes wrongly.
void refuse_known_faults(const onnx::Model& model);

/// Inserts guards, and throws Error for a recurrent node whose sequence lengths OpenVINO's CPU plugin ignores. The
/// plugin's GatherND and ScatterElements read and write wherever an index points; a guard before such a node checks the
/// indices. The plugin computes quotients, remainders, powers, matrix products and reductions of integers in f32; in
/// the main graph, a guard after such a node checks the integers. A guard that fails throws ov::Exception, which names
/// the operator.
void add_guards(ov::Model& model, const std::string& source);

}  // namespace graft::runtime

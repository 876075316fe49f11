// What stands between Graft and the known faults of OpenVINO's CPU plugin.
#pragma once

#include <openvino/core/model.hpp>
#include <string>
#include <string_view>

#include "onnx/model.hpp"

namespace graft::runtime {

/// A part of the message of a guard that finds integers which the plugin would round (EngineLimit).
inline constexpr std::string_view beyond_exact_integers =
    "the CPU engine computes such integers in f32, where those beyond 2^24 are rounded";

/// Throws Error naming the first node that OpenVINO 2026.4 takes and computes wrongly.
void refuse_known_faults(const onnx::Model& model);

/// GatherND and ScatterElements of the plugin read and write wherever an index points. Quotients, remainders, powers,
/// matrix products and reductions of integers are computed in f32. Puts a node before each of the first and after
/// each of the others in the main graph, whose evaluation throws ov::Exception, naming the operator, where an index
/// lies outside or an integer is too large. Throws Error naming a recurrence whose lengths the plugin ignores.
void add_guards(ov::Model& model, const std::string& source);

}  // namespace graft::runtime

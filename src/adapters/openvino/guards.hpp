// What stands between Graft and the known faults of OpenVINO's CPU plugin.
#pragma once

#include <memory>
#include <openvino/core/model.hpp>
#include <string>
#include <vector>

#include "graph/model.hpp"

namespace graft {

/// Throws Error naming the first node that OpenVINO 2026.4 takes and calculates wrongly.
void refuse_known_faults(const Model& model);

/// An output of one boolean behind the model's own: whether the operator met what it does not calculate.
struct Guard {
  std::string name;  ///< Of the operator: "'gather' (GatherND)".
  std::string why;
};

/// GatherND and ScatterElements of the plugin read and write wherever an index points: brings their indices into range.
/// Quotients, remainders, powers, matrix products and reductions of integers are calculated in f32. Adds an output for
/// each of either in the main graph, in this order.
[[nodiscard]] std::vector<Guard> add_guards(ov::Model& model);

}  // namespace graft

// The commands to run after a network was judged, until it is an engine.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "inspect/verdicts.hpp"

namespace graft::inspect {

struct NextStep {
  enum class Kind : std::uint8_t {
    correct,  ///< Nodes have faults: correct them in the program that wrote the model.
    convert,  ///< `graft convert` rewrites nodes as native layers and operators of Graft.
    guard,    ///< `graft convert` rewrites nodes that the release computes wrongly.
    cut,      ///< `graft convert --cut` leaves nodes to the host that neither TensorRT nor Graft computes.
    probe,    ///< The rules give no answer for some nodes: probe TensorRT.
    build,    ///< The network is ready for `graft build`.
  };
  Kind kind = Kind::build;
  std::size_t nodes = 0;  ///< Number of nodes that need the step; for `build`, of all nodes.
  std::size_t wrong = 0;  ///< Number of nodes of a `cut` that TensorRT builds and computes wrongly.
  friend bool operator==(const NextStep&, const NextStep&) = default;
};

/// Returns the steps in the order in which they are to be run. A model that must be converted first, or that is not
/// known to run, gets no step `build`. A model that is already converted (`is_converted`), or that TensorRT built
/// unchanged (`is_built`), gets no step `convert`.
[[nodiscard]] std::vector<NextStep> next_steps(const std::vector<NodeSupport>& nodes, bool is_converted,
                                               bool is_built = false);

}  // namespace graft::inspect

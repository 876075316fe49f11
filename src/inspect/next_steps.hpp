// What brings a network that was judged nearer to an engine.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "inspect/verdicts.hpp"

namespace graft::inspect {

struct NextStep {
  enum class Kind : std::uint8_t {
    correct,  ///< Nodes have faults: correct them in the program that wrote the model.
    convert,  ///< `graft convert` makes native layers and operators of Graft.
    guard,    ///< The same for nodes that the release computes wrongly.
    cut,      ///< The same with --cut: some nodes run nowhere.
    probe,    ///< The rules do not know of some nodes: ask TensorRT.
    build,    ///< Nothing is in the way.
  };
  Kind kind = Kind::build;
  std::size_t nodes = 0;  ///< That it is about; all of them for `build`.
  friend bool operator==(const NextStep&, const NextStep&) = default;
};

/// In the order in which they are to be done. A model that is to be converted first, or is not known to run, is not to
/// be built yet, unless TensorRT built it as it is (`is_built`).
[[nodiscard]] std::vector<NextStep> next_steps(const std::vector<NodeVerdict>& nodes, bool is_converted,
                                               bool is_built = false);

}  // namespace graft::inspect

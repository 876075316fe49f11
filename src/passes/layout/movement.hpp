// Regions that only move elements (slices, concatenations, repetitions), and their axis maps.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "onnx/model.hpp"
#include "passes/rewriter.hpp"

namespace graft::passes {

/// A part of the graph that computes `y` from `x` and only copies elements of x and inserts constants, for example
/// slices, concatenations and repetitions.
struct Movement {
  onnx::Value* x = nullptr;
  onnx::Value* y = nullptr;
  std::vector<onnx::Node*> nodes;  ///< The nodes in topological order, including nodes that compute shapes.
};

/// A rewrite for a movement: `edit` changes the graph, and `replacement` and `why` are for the report. If there is no
/// rewrite, `obstacle` has the reason. A function of the type ReadMovement returns it, from the axis maps of the
/// movement at each set of sizes for which it was run (only one set if all sizes are fixed).
struct MovementFusion {
  std::function<void(onnx::Graph&)> edit;  ///< Empty if there is no rewrite.
  std::string replacement;
  std::string why;
  std::string obstacle;

  [[nodiscard]] static MovementFusion none(std::string obstacle) { return {{}, "", "", std::move(obstacle)}; }
};
using ReadMovement = std::function<MovementFusion(const Movement&, const std::vector<AxisMaps>& maps)>;

/// Finds parts of the main graph that only move elements (Movement) and whose result is longer along some axis and
/// shorter along none, and replaces each by the rewrite that `read` returns. If several of them compute the same
/// result, the longest is tried first. `may_become(before, after)` returns whether an axis of `before` elements may
/// become one of `after` elements. If `read` returns an obstacle, the report lists it as a near miss of the pattern
/// `pattern`.
void fuse_movements(Rewriter& rewriter, const std::string& pattern, bool (*may_become)(std::int64_t, std::int64_t),
                    const ReadMovement& read);

}  // namespace graft::passes

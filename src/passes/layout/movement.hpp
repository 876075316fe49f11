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

/// A region from `x` to `y` that copies elements of x and inserts constants, and computes nothing.
struct Movement {
  onnx::Value* x = nullptr;
  onnx::Value* y = nullptr;
  std::vector<onnx::Node*> nodes;  ///< The nodes in topological order, with those that compute shapes.
};

/// The rewrite of a movement, or the reason why it has none. The `maps` of ReadMovement hold one entry per set of sizes
/// that was run: only one if the sizes are fixed.
struct MovementFusion {
  std::function<void(onnx::Graph&)> edit;  ///< Empty if there is no rewrite.
  std::string replacement;
  std::string why;
  std::string obstacle;

  [[nodiscard]] static MovementFusion none(std::string obstacle) { return {{}, "", "", std::move(obstacle)}; }
};
using ReadMovement = std::function<MovementFusion(const Movement&, const std::vector<AxisMaps>& maps)>;

/// Finds movements in the main graph after which some axis is longer and none is shorter, and replaces each by the
/// rewrite that `read` returns. Of the tensors from which alone the result can be computed, the farthest is tried
/// first. `pattern` names the near misses. `may_become` returns whether an axis with the first number of elements may
/// become one with the second.
void fuse_movements(Rewriter& rewriter, const std::string& pattern, bool (*may_become)(std::int64_t, std::int64_t),
                    const ReadMovement& read);

}  // namespace graft::passes

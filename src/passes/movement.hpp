// Regions that only move elements (slices, concatenations, repetitions), and what they do to each axis.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "onnx/model.hpp"
#include "passes/rewriter.hpp"

namespace graft::passes {

/// From `x` to `y` elements of x are copied, and constants put between them; nothing is computed.
struct Movement {
  onnx::Value* x = nullptr;
  onnx::Value* y = nullptr;
  std::vector<onnx::Node*> nodes;  ///< In topological order, those that compute shapes included.
};

/// The operator found in a movement, or why there is none. `maps` holds one entry for each set of sizes that was tried:
/// one where the sizes are fixed.
struct MovementFusion {
  std::function<void(onnx::Graph&)> edit;  ///< Empty where there is none.
  std::string replacement;
  std::string why;
  std::string obstacle;

  [[nodiscard]] static MovementFusion none(std::string obstacle) { return {{}, "", "", std::move(obstacle)}; }
};
using ReadMovement = std::function<MovementFusion(const Movement&, const std::vector<AxisMaps>& maps)>;

/// Looks in the main graph for movements after which some axis is longer and none shorter, follows each from the
/// farthest tensor that it depends on alone, and replaces it by what `read` finds. `pattern` is the name for near
/// misses; `may_become` says whether an axis of so many elements may become one of so many.
void fuse_movements(Rewriter& rewriter, const std::string& pattern, bool (*may_become)(std::int64_t, std::int64_t),
                    const ReadMovement& read);

}  // namespace graft::passes

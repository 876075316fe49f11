// The passes of the pipeline, except the fusions of operators (operator_fusion.hpp). The first comment of each file
// shows what its passes replace, and why that is right.
#pragma once

#include <cstdint>
#include <functional>
#include <string_view>

namespace graft::passes {

class Rewriter;

enum class PassKind : std::uint8_t {
  rewrite,
  cleanup,  ///< Removes, folds or moves nodes; reports count its rewrites and do not list them.
  guard,    ///< Runs only if ConvertOptions::only or guards lists it.
};

struct Pass {
  std::string_view name;
  std::string_view why;  ///< Why the pass is at its position in the pipeline.
  std::function<void(Rewriter&)> run = {};
  PassKind kind = PassKind::rewrite;
  /// For passes of ConvertOptions::extra_passes: the name of the pass after which this pass runs; if empty, it runs
  /// before all other passes.
  std::string_view after = "remove_leftovers";
  /// Whether the pass runs in every round (see convert()). Passes of the pipeline always do. Leave it false for an
  /// extra pass that must see the original model only, or that would rewrite its own results again.
  bool runs_in_every_round = false;
  bool is_required = false;  ///< Whether the pass runs even if ConvertOptions::only or without excludes it.
};

void inline_functions_of_exporters(Rewriter& rewriter);
void upgrade_model_opset(Rewriter& rewriter);
void count_axes_from_front(Rewriter& rewriter);
void lower_drop_ins(Rewriter& rewriter);
void lower_to_native(Rewriter& rewriter);
void widen_bytes(Rewriter& rewriter);
void guard_grid_sample(Rewriter& rewriter);
void lower_volume_sampling(Rewriter& rewriter);
void drop_default_modes(Rewriter& rewriter);
void fold_constants(Rewriter& rewriter);
void simplify_shapes(Rewriter& rewriter);
void move_transposes(Rewriter& rewriter);
void remove_identities(Rewriter& rewriter);
void fold_transposes(Rewriter& rewriter);
void fold_pads(Rewriter& rewriter);
void unwrap_pads(Rewriter& rewriter);
void merge_transposes(Rewriter& rewriter);
void merge_equal_nodes(Rewriter& rewriter);
void choose_plugins(Rewriter& rewriter);
void remove_dead(Rewriter& rewriter);
void remove_empty_checks(Rewriter& rewriter);

/// The name of the pass that applies the fusions of loaded operator libraries. Reports list the patterns of this pass
/// that matched only in part before those of other passes.
inline constexpr std::string_view library_pass = "fuse_library_operators";

}  // namespace graft::passes

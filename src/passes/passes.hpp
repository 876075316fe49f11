// The passes of the pipeline, except the fusions of operators (operator_fusion.hpp). The first comment of each file
// shows what its passes replace, and why that is right.
#pragma once

#include <string_view>

namespace graft::passes {

class Rewriter;

struct Pass {
  std::string_view name;
  std::string_view why;
  void (*run)(Rewriter&) = nullptr;
  bool is_guard = false;  ///< Whether the pass runs only if ConvertOptions::only or guards lists it.
};

void inline_functions_of_exporters(Rewriter& rewriter);
void upgrade_model_opset(Rewriter& rewriter);
void count_axes_from_front(Rewriter& rewriter);
void lower_drop_ins(Rewriter& rewriter);
void lower_to_native(Rewriter& rewriter);
void guard_grid_sample(Rewriter& rewriter);
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
// The user's rules, one pass per stage; see rule_file.hpp.
void apply_interface_rules(Rewriter& rewriter);
void apply_rules_before(Rewriter& rewriter);
void apply_rules_after(Rewriter& rewriter);
// The fusions of libraries of operators, see library_fusions.hpp.
inline constexpr std::string_view library_pass = "fuse_library_operators";
void fuse_library_operators(Rewriter& rewriter);

}  // namespace graft::passes

// The functions that apply the kinds of rules to a network. Each throws Error, with file, line and column, for a rule
// that contradicts the network, and writes into the outcome what it did and what it did not find.
#pragma once

#include "rules/rule_run.hpp"

namespace graft::rules {

// replace/replace.cpp
void replace_selected(RuleRun& run);  ///< Replaces the selected nodes by an operator.
void replace_matched(RuleRun& run);   ///< Replaces the nodes of a pattern by an operator.
// replace/remove.cpp
void remove_nodes(RuleRun& run);
// replace/set.cpp
void set_attributes(RuleRun& run);
void set_constants(RuleRun& run);

// interface/rename.cpp
void rename_tensors(RuleRun& run);
void rename_nodes(RuleRun& run);
// interface/shapes.cpp
void set_shapes(RuleRun& run);
void set_types(RuleRun& run);
void fix_dimensions(RuleRun& run);
// interface/dynamic_batch.cpp
void make_batch_dynamic(RuleRun& run);
// interface/outputs.cpp
void add_outputs(RuleRun& run);
void drop_outputs(RuleRun& run);
// interface/cut.cpp
void cut(RuleRun& run);

}  // namespace graft::rules

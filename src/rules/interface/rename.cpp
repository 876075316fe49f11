// Gives tensors and nodes other names (`rename`, `rename_nodes`).
#include <fmt/format.h>

#include <utility>

#include "onnx/node_ref.hpp"
#include "rules/kinds.hpp"

namespace graft::rules {

void rename_tensors(RuleRun& run) {
  for (const Rule::Entry& entry : run.rule.entries) {
    const std::vector<onnx::Value*> values = find_tensors(run.graph().values(), entry.name);
    if (values.empty()) record_missing_tensor(run, entry.name, "tensor", run.graph().values());
    for (onnx::Value* value : values) {
      const std::string before = value->name;
      std::string after = entry.name.renamed(before, std::get<std::string>(entry.value.data));
      if (after == before) continue;
      if (after.empty()) fail_at(entry.value.place, fmt::format("tensor '{}' would get an empty name", before));
      if (run.graph().find_local(after) != nullptr) {
        fail_at(entry.value.place,
                fmt::format("tensor '{}' would be renamed to '{}', but there is already a tensor '{}'", before, after,
                            after));
      }
      run.graph().rename(*value, after);
      record_change(run, {.others = fmt::format("tensor '{}'", before)}, fmt::format("'{}'", after));
    }
  }
}

void rename_nodes(RuleRun& run) {
  for (const Rule::Entry& entry : run.rule.entries) {
    bool found = false;
    std::vector<std::string> known;
    for (onnx::Graph* part : run.rewriter.graphs()) {
      for (onnx::Node* node : part->nodes()) {
        if (node->name.empty()) continue;
        known.push_back(node->name);
        if (!entry.name.matches(node->name)) continue;
        found = true;
        NodeRef before = ref_of(*node);
        node->name = entry.name.renamed(node->name, std::get<std::string>(entry.value.data));
        record_change(run, {.nodes = {std::move(before)}}, fmt::format("'{}'", node->name));
      }
    }
    if (!found)
      record_miss(run,
                  fmt::format("there is no node '{}'{}", entry.name.text(), did_you_mean(entry.name.text(), known)));
  }
}

}  // namespace graft::rules

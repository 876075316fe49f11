// Adds outputs to a network and removes them (`add_outputs`, `drop_outputs`).
#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "rules/kinds.hpp"

namespace graft::rules {

void add_outputs(RuleRun& run) {
  for (const NamePattern& name : run.rule.names) {
    bool found = false;
    for (onnx::Value* value : find_tensors(run.graph().values(), name)) {
      if (value->producer == nullptr) continue;
      found = true;
      const auto& outputs = run.graph().outputs();
      if (std::find(outputs.begin(), outputs.end(), value) != outputs.end()) {
        if (name.is_exact())
          record_change(run, {.others = fmt::format("tensor '{}'", value->name)}, "already an output");
        continue;
      }
      run.graph().add_output(*value);
      record_change(run, {.others = fmt::format("tensor '{}'", value->name)}, "an output");
    }
    if (!found) {
      std::vector<onnx::Value*> computed = run.graph().values();
      std::erase_if(computed, [](const onnx::Value* value) { return value->producer == nullptr; });
      record_missing_tensor(run, name, "node output", computed);
    }
  }
}

void drop_outputs(RuleRun& run) {
  for (const NamePattern& name : run.rule.names) {
    const std::vector<onnx::Value*> values = find_tensors(run.graph().outputs(), name);
    if (values.empty()) record_missing_tensor(run, name, "output", run.graph().outputs());
    for (const onnx::Value* value : values) {
      const auto& outputs = run.graph().outputs();
      if (outputs.size() == 1)
        fail_at(name.place(), fmt::format("'{}' is the only output of the model; it cannot be dropped, because a model "
                                          "must have at least one output",
                                          value->name));
      const auto found = std::find(outputs.begin(), outputs.end(), value);
      run.graph().remove_output(static_cast<std::size_t>(found - outputs.begin()));
      record_change(run, {.others = fmt::format("output '{}'", value->name)}, "nothing");
    }
  }
  run.graph().remove_dead();
}

}  // namespace graft::rules

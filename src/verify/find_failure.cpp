// Halves the model until one node is left, then takes that node alone.
#include "verify/find_failure.hpp"

#include <algorithm>
#include <unordered_set>
#include <utility>

#include "graft/error.hpp"
#include "graph/extract.hpp"
#include "graph/node_ref.hpp"
#include "verify/match_tensors.hpp"

namespace graft {
namespace {

class Search {
 public:
  Search(const PartialRuns& model, const TensorMap& inputs) : model_(model), inputs_(inputs) {
    for (const Node* node : model.model().graph().nodes()) {
      const bool gives_something = std::any_of(node->outputs.begin(), node->outputs.end(), [](const Value* output) {
        return output != nullptr && !output->constant();
      });
      if (gives_something) nodes_.push_back(node);
    }
  }

  Failure run(std::string message) {
    Failure failure;
    failure.message = std::move(message);
    if (!fails(nodes_.size())) return failure;  // more outputs than the model itself has may make it run
    std::size_t runs = 0;
    std::size_t fails_with = nodes_.size();
    while (fails_with - runs > 1) {
      const std::size_t middle = runs + (fails_with - runs) / 2;
      (fails(middle) ? fails_with : runs) = middle;
    }
    const Node& node = *nodes_[fails_with - 1];
    failure.node = ref_of(node);
    reduce(node, failure);
    return failure;
  }

 private:
  /// What these nodes give and none of them reads.
  [[nodiscard]] std::vector<const Value*> ends_of(std::size_t count) const {
    const std::unordered_set<const Node*> members(nodes_.begin(), nodes_.begin() + static_cast<std::ptrdiff_t>(count));
    std::vector<const Value*> ends;
    for (std::size_t i = 0; i < count; ++i) {
      for (const Value* output : nodes_[i]->outputs) {
        if (output == nullptr || output->constant()) continue;
        const bool is_read = std::any_of(output->uses.begin(), output->uses.end(),
                                         [&](const Use& use) { return members.contains(use.node); });
        if (!is_read) ends.push_back(output);
      }
    }
    return ends;
  }

  [[nodiscard]] bool fails(std::size_t count) const {
    try {
      static_cast<void>(model_.run(ends_of(count), inputs_));
      return false;
    } catch (const Error&) {
      return true;
    }
  }

  /// The node alone, with what it reads as inputs; then with the nodes before it, one step further back each time,
  /// until it fails.
  void reduce(const Node& node, Failure& failure) const {
    std::vector<const Value*> outputs;
    for (const Value* output : node.outputs) {
      if (output != nullptr && (!output->is_unused() || outputs.empty())) outputs.push_back(output);
    }
    std::unordered_set<const Node*> inside{&node};
    for (;;) {
      const GraphRegion region =
          region_before(outputs, [&](const Value& value) { return !inside.contains(value.producer); });
      if (try_part(region, outputs, failure)) return;
      const std::size_t before = inside.size();
      for (const Value* input : region.inputs) {
        if (input->producer != nullptr) inside.insert(input->producer);
      }
      if (inside.size() == before) return;
    }
  }

  [[nodiscard]] bool try_part(const GraphRegion& region, const std::vector<const Value*>& outputs,
                              Failure& failure) const {
    TensorMap given;
    Model part;
    try {
      std::vector<const Value*> computed;
      for (const Value* input : region.inputs) {
        const auto found = inputs_.find(input->name);
        if (input->is_input && found != inputs_.end()) {
          given.emplace(input->name, found->second);
        } else {
          computed.push_back(input);
        }
      }
      if (!computed.empty()) given.merge(model_.run(computed, inputs_));
      part = extract(model_.model(), region.inputs, outputs);
    } catch (const Error&) {
      return false;  // one of its inputs has no known type: begin further back
    }
    try {
      static_cast<void>(model_.run(part, given));
      return false;
    } catch (const Error& error) {
      failure.message = error.what();
    }
    for (const Node* node : region.nodes) failure.nodes.push_back(ref_of(*node));
    failure.part = std::move(part);
    failure.inputs = std::move(given);
    return true;
  }

  const PartialRuns& model_;
  const TensorMap& inputs_;
  std::vector<const Node*> nodes_;
};

}  // namespace

Failure find_failure(const PartialRuns& model, const TensorMap& inputs, std::string message) {
  return Search(model, inputs).run(std::move(message));
}

}  // namespace graft

// Bisects the model until one node is left, then runs that node alone.
#include "verify/localize/find_failure.hpp"

#include <algorithm>
#include <unordered_set>
#include <utility>

#include "graft/error.hpp"
#include "onnx/extract.hpp"
#include "onnx/node_ref.hpp"
#include "verify/compare/match_tensors.hpp"

namespace graft::verify {
namespace {

class Search {
 public:
  Search(const PartialRuns& model, const runtime::TensorMap& inputs) : model_(model), inputs_(inputs) {
    for (const onnx::Node* node : model.model().graph().nodes()) {
      const bool gives_something =
          std::any_of(node->outputs.begin(), node->outputs.end(),
                      [](const onnx::Value* output) { return output != nullptr && !output->constant(); });
      if (gives_something) nodes_.push_back(node);
    }
  }

  FoundFailure run(std::string message) {
    FoundFailure found;
    found.failure.message = std::move(message);
    if (!fails(nodes_.size())) return found;  // The part has more outputs than the model itself, so it may run.
    std::size_t runs = 0;
    std::size_t fails_with = nodes_.size();
    while (fails_with - runs > 1) {
      const std::size_t middle = runs + (fails_with - runs) / 2;
      (fails(middle) ? fails_with : runs) = middle;
    }
    const onnx::Node& node = *nodes_[fails_with - 1];
    found.failure.node = ref_of(node);
    reduce(node, found);
    return found;
  }

 private:
  /// Returns the outputs of the first `count` nodes that none of these nodes reads.
  [[nodiscard]] std::vector<const onnx::Value*> ends_of(std::size_t count) const {
    const std::unordered_set<const onnx::Node*> members(nodes_.begin(),
                                                        nodes_.begin() + static_cast<std::ptrdiff_t>(count));
    std::vector<const onnx::Value*> ends;
    for (std::size_t i = 0; i < count; ++i) {
      for (const onnx::Value* output : nodes_[i]->outputs) {
        if (output == nullptr || output->constant()) continue;
        const bool is_read = std::any_of(output->uses.begin(), output->uses.end(),
                                         [&](const onnx::Use& use) { return members.contains(use.node); });
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

  /// Finds the smallest model that fails: the node alone on its inputs, then with the nodes one step before it, and so
  /// on. Stores the model and its inputs in `found`.
  void reduce(const onnx::Node& node, FoundFailure& found) const {
    std::vector<const onnx::Value*> outputs;
    for (const onnx::Value* output : node.outputs) {
      if (output != nullptr && (!output->is_unused() || outputs.empty())) outputs.push_back(output);
    }
    std::unordered_set<const onnx::Node*> inside{&node};
    for (;;) {
      const onnx::GraphRegion region =
          onnx::region_before(outputs, [&](const onnx::Value& value) { return !inside.contains(value.producer); });
      if (try_part(region, outputs, found)) return;
      const std::size_t before = inside.size();
      for (const onnx::Value* input : region.inputs) {
        if (input->producer != nullptr) inside.insert(input->producer);
      }
      if (inside.size() == before) return;
    }
  }

  [[nodiscard]] bool try_part(const onnx::GraphRegion& region, const std::vector<const onnx::Value*>& outputs,
                              FoundFailure& failed) const {
    runtime::TensorMap given;
    onnx::Model part;
    try {
      std::vector<const onnx::Value*> computed;
      for (const onnx::Value* input : region.inputs) {
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
      return false;  // The type of an input is unknown, so the part must begin further back.
    }
    try {
      static_cast<void>(model_.run(part, given));
      return false;
    } catch (const Error& error) {
      failed.failure.message = error.what();
    }
    for (const onnx::Node* node : region.nodes) failed.failure.nodes.push_back(ref_of(*node));
    failed.part = std::move(part);
    failed.inputs = std::move(given);
    return true;
  }

  const PartialRuns& model_;
  const runtime::TensorMap& inputs_;
  std::vector<const onnx::Node*> nodes_;
};

}  // namespace

FoundFailure find_failure(const PartialRuns& model, const runtime::TensorMap& inputs, std::string message) {
  return Search(model, inputs).run(std::move(message));
}

}  // namespace graft::verify
